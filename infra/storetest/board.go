package storetest

import (
	"bytes"
	stdcmp "cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

func verdicts(t *testing.T, q *queue) {
	ctx := soon(t)
	var rows []tx.Work
	for n := range 10 {
		rows = append(rows, q.row(n, address(n), 0))
	}
	q.apply(opens(rows...)...)
	q.apply(announce(1, block(30)), announce(2, block(10)), announce(3, block(20)), announce(4, block(1<<62)),
		seal(5, block(15)), announce(6, block(0)), announce(7, block(10)), reopen(7, tx.Open, q.clock.Now()))
	for _, c := range []struct {
		phase    tx.Phase
		from, to uint64
		limit    int
		want     []int
	}{
		{tx.Announced, 0, 1<<64 - 1, 100, []int{6, 2, 3, 1, 4}},
		{tx.Announced, 10, 20, 100, []int{2, 3}},
		{tx.Announced, 11, 19, 100, nil},
		{tx.Announced, 20, 10, 100, nil},
		{tx.Announced, 0, 1<<64 - 1, 3, []int{6, 2, 3}},
		{tx.Sealed, 0, 100, 100, []int{5}},
	} {
		got, err := q.Verdicts(ctx, 1, c.phase, c.from, c.to, chain.Hash{}, c.limit)
		check(t, err)
		q.wantHashes(fmt.Sprintf("%s in %d..%d", c.phase, c.from, c.to), got, c.want...)
	}
	got, err := q.Verdicts(ctx, 2, tx.Announced, 0, 100, chain.Hash{}, 100)
	check(t, err)
	q.wantSet("of another chain", got)
}

// verdictsInPages pages through more rows than one call returns, many of which rest on one
// block.
func verdictsInPages(t *testing.T, q *queue) {
	ctx := soon(t)
	var rows []tx.Work
	var changes []tx.Change
	for n := range 30 {
		rows = append(rows, q.row(n, address(n), 0))
		changes = append(changes, announce(n, block([]uint64{7, 20, 20, 20, 1 << 63, 20}[n%6])))
	}
	q.apply(append(opens(rows...), changes...)...)
	want, err := q.Verdicts(ctx, 1, tx.Announced, 0, 1<<64-1, chain.Hash{}, 100)
	check(t, err)
	inOrder := slices.IsSortedFunc(want, func(a, b tx.Work) int {
		return stdcmp.Or(stdcmp.Compare(a.Block.Number, b.Block.Number), bytes.Compare(a.Hash[:], b.Hash[:]))
	})
	if len(want) != 30 || !inOrder {
		t.Fatalf("%d rows, in order %v", len(want), inOrder)
	}
	for _, size := range []int{1, 7, 29, 30, 31} {
		var got []tx.Work
		var from uint64
		var after chain.Hash
		for len(got) <= len(want) {
			page, err := q.Verdicts(ctx, 1, tx.Announced, from, 1<<64-1, after, size)
			check(t, err)
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			from, after = page[len(page)-1].Block.Number, page[len(page)-1].Hash
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pages of %d: %s", size, diff)
		}
	}
}

func expiring(t *testing.T, q *queue) {
	ctx := soon(t)
	var rows []tx.Work
	for n, at := range []uint64{0, 100, 200, 300, 1 << 63, 1<<64 - 1, 100, 100, 100} {
		w := q.row(n, address(n), 0)
		w.ExpiresAt = at
		rows = append(rows, w)
	}
	q.apply(opens(rows...)...)
	q.apply(watched(6), announce(7, block(1)), seal(8, block(1)))
	for _, c := range []struct {
		time  uint64
		limit int
		want  []int
	}{
		{0, 100, nil}, {99, 100, nil}, {100, 100, []int{1, 6}}, {250, 100, []int{1, 2, 6}},
		{1<<63 - 1, 100, []int{1, 2, 3, 6}}, {1 << 63, 100, []int{1, 2, 3, 4, 6}}, {1<<64 - 1, 100, []int{1, 2, 3, 4, 5, 6}},
	} {
		got, err := q.Expiring(ctx, 1, c.time, c.limit, c.limit)
		check(t, err)
		q.wantSet(fmt.Sprint("expired at ", c.time), got, c.want...)
	}
	got, err := q.Expiring(ctx, 1, 250, 2, 2)
	check(t, err)
	if len(got) != 2 {
		t.Errorf("%d rows, asked for 2", len(got))
	}
}

// expiringShared checks that a client's expired rows, however many and however old, hide none of
// another client's, and that each client's earliest rows come first.
func expiringShared(t *testing.T, q *queue) {
	ctx := soon(t)
	var rows []tx.Work
	add := func(n int, client string, at uint64) {
		w := q.row(n, address(n), 0)
		w.ExpiresAt, w.Client = at, client
		rows = append(rows, w)
	}
	for n := range 30 {
		add(n, "crowd", 100+uint64(n))
	}
	add(40, "a", 500)
	add(41, "z", 600)
	add(42, "z", 610)
	add(43, "z", 700)
	q.apply(opens(rows...)...)
	q.apply(watched(1), watched(42))
	for _, c := range []struct {
		time        uint64
		each, limit int
		want        []int
	}{
		{650, 1, 100, []int{0, 40, 41}}, {650, 2, 100, []int{0, 1, 40, 41, 42}}, {650, 100, 3, []int{0, 40, 41}},
		{650, 100, 5, []int{0, 1, 40, 41, 42}}, {650, 100, 8, []int{0, 1, 2, 3, 4, 40, 41, 42}},
		{650, 0, 100, nil}, {650, 100, 0, nil}, {550, 2, 100, []int{0, 1, 40}},
	} {
		got, err := q.Expiring(ctx, 1, c.time, c.each, c.limit)
		check(t, err)
		q.wantSet(fmt.Sprintf("expired at %d, of a client %d, together %d", c.time, c.each, c.limit), got, c.want...)
	}
}

// watchedRows pages through the watched rows, and gets no others.
func watchedRows(t *testing.T, q *queue) {
	ctx := soon(t)
	var rows []tx.Work
	for n := range 12 {
		rows = append(rows, q.row(n, address(n), 0))
	}
	away := q.row(90, address(1), 7)
	away.Chain = 2
	q.apply(opens(append(rows, away)...)...)
	q.apply(announce(0, block(1)), seal(1, block(1)))
	var want []int
	for n := 3; n < 12; n++ {
		q.apply(watched(n))
		want = append(want, n)
	}
	for _, size := range []int{1, 4, 9, 100} {
		var got []tx.Work
		for after := (chain.Hash{}); len(got) <= len(want); {
			page, err := q.Watched(ctx, 1, after, size)
			check(t, err)
			if len(page) == 0 {
				break
			}
			got, after = append(got, page...), page[len(page)-1].Hash
		}
		q.wantSet(fmt.Sprintf("watched, in pages of %d", size), got, want...)
		if !slices.IsSortedFunc(got, func(a, b tx.Work) int { return bytes.Compare(a.Hash[:], b.Hash[:]) }) {
			t.Errorf("in pages of %d: not in order", size)
		}
	}
}

// wait makes rows of chain 1 wait for a nonce (see WaitNonce), due in an hour.
func (q *queue) wait(nonce uint64, rows ...int) {
	q.t.Helper()
	q.lease("waiter", time.Hour, 1000)
	var said []tx.Done
	for _, n := range rows {
		said = append(said, tx.Done{Chain: 1, Hash: hash(n), NextAt: q.clock.Now().Add(time.Hour), WaitNonce: nonce})
	}
	check(q.t, q.Done(soon(q.t), "waiter", said))
}

func waitingInTurn(t *testing.T, q *queue) {
	ctx := soon(t)
	var rows []tx.Work
	for n := range 5 {
		rows = append(rows, q.row(10*n, address(n), 7), q.row(10*n+1, address(n), 8))
	}
	away := q.row(90, address(1), 7)
	away.Chain = 2
	q.apply(opens(append(rows, away)...)...)
	none, err := q.Waiting(ctx, 1, 10)
	check(t, err)
	if len(none) != 0 {
		t.Fatal("nobody waits, and Waiting says", none)
	}
	q.wait(7, 0, 1, 10, 11, 20, 30) // the rows of senders 0 and 1, and one row each of 2 and 3
	turn := func(limit int) (senders []chain.Address) {
		t.Helper()
		got, err := q.Waiting(ctx, 1, limit)
		check(t, err)
		for _, s := range got {
			if s.Chain != 1 || !s.Key.IsZero() {
				t.Errorf("sequence %+v waits", s)
			}
			senders = append(senders, s.Sender)
		}
		return senders
	}
	// Each is returned once before any is returned twice, however small the limit is.
	seen := map[chain.Address]int{}
	for range 12 {
		got := turn(1)
		if len(got) != 1 {
			t.Fatalf("asked for one, got %d", len(got))
		}
		seen[got[0]]++
	}
	for n := range 4 {
		if seen[address(n)] != 3 {
			t.Errorf("in 12 turns of 4 sequences, %d was seen %d times", n, seen[address(n)])
		}
	}
	first, second := turn(3), turn(2)
	if len(first) != 3 || len(second) != 2 || slices.Contains(first, second[0]) {
		t.Errorf("three, then two: %v, %v", first, second)
	}
	if got := turn(100); len(got) != 4 {
		t.Errorf("all that wait: %d", len(got))
	}
	q.apply(announce(20, block(1)), closed(30))
	if got := turn(100); len(got) != 2 {
		t.Errorf("two wait, Waiting says %d", len(got))
	}
}

// wake passes the chain's current next nonces. A row whose WaitNonce is k+1 was tried when the
// next nonce was k. It is woken when the next nonce exceeds k. If it were woken at k, every
// check of a chain without progress would send it again.
func wake(t *testing.T, q *queue) {
	ctx := soon(t)
	q.apply(opens(q.row(1, address(1), 7), q.row(2, address(1), 9), q.row(3, address(2), 7), q.row(4, address(1), 6))...)
	q.wait(6, 1, 3)
	q.wait(8, 2)
	check(t, q.Done(ctx, "waiter", []tx.Done{{Chain: 1, Hash: hash(4), NextAt: q.clock.Now().Add(time.Hour)}}))
	for _, c := range []struct {
		now  uint64
		want []int
	}{{0, nil}, {4, nil}, {5, nil}, {6, []int{1}}, {7, nil}, {8, []int{2}}} {
		n, err := q.Wake(ctx, map[chain.Sequence]uint64{
			{Chain: 1, Sender: address(1)}: c.now, {Chain: 1, Sender: address(77)}: 1 << 63, {Chain: 2, Sender: address(2)}: 99,
		})
		check(t, err)
		if (n > 0) != (len(c.want) > 0) {
			t.Errorf("the chain wants %d: %d rows woken", c.now, n)
		}
		got := q.lease("a", time.Hour, 100)
		q.wantSet(fmt.Sprint("the chain wants ", c.now), got, c.want...)
		for _, w := range got { // attempted, and no longer waiting
			check(t, q.Done(ctx, "a", []tx.Done{{Chain: 1, Hash: w.Hash, NextAt: q.clock.Now().Add(time.Hour)}}))
		}
	}
	if n, err := q.Wake(ctx, nil); n != 0 || err != nil {
		t.Errorf("nothing to wake: %d, %v", n, err)
	}
}

func advance(t *testing.T, q *queue) {
	ctx, now := soon(t), q.clock.Now()
	soonest := uint64(now.Unix()) + 100
	later := func(n int, eligible uint64) tx.Work {
		w := q.row(n, address(n), 0)
		w.EligibleAt, w.NextAt = eligible, now.Add(time.Hour)
		return w
	}
	away := later(9, soonest)
	away.Chain = 2
	q.apply(opens(later(1, soonest), later(2, soonest+1), later(3, soonest+50), later(4, soonest), later(5, 1<<64-1), away,
		later(6, soonest-200))...) // the last is eligible by the wall clock too, so it waits for something else
	q.apply(on(4, func(c *tx.Change) {
		c.Attempt = &tx.Attempted{Number: 1, At: now, NextAt: now.Add(time.Hour)} // attempted before
	}))
	for _, c := range []struct {
		blockTime uint64
		want      []int
	}{{soonest - 1, nil}, {soonest + 1, []int{1, 2}}, {soonest + 1, nil}, {1 << 63, []int{3}}} {
		n, err := q.Advance(ctx, 1, c.blockTime)
		check(t, err)
		if n != len(c.want) {
			t.Errorf("at block time %d: %d rows, not %d", c.blockTime, n, len(c.want))
		}
		q.wantSet(fmt.Sprint("block time ", c.blockTime), q.lease("a", 24*time.Hour, 100), c.want...)
	}
}

func dropSealed(t *testing.T, q *queue) {
	ctx := soon(t)
	var rows []tx.Work
	for n := range 6 {
		rows = append(rows, q.row(n, address(n), 0))
	}
	q.apply(opens(rows...)...)
	q.apply(seal(0, block(10)), seal(1, block(20)), seal(2, block(30)), announce(3, block(5)))
	if n, err := q.DropSealed(ctx, 1, 20); n != 1 || err != nil {
		t.Fatalf("below 20: %d, %v", n, err)
	}
	if n, err := q.DropSealed(ctx, 2, 99); n != 0 || err != nil {
		t.Fatalf("of another chain: %d, %v", n, err)
	}
	got, err := q.Find(ctx, 1, []chain.Hash{hash(0), hash(1), hash(2), hash(3), hash(4)})
	check(t, err)
	q.wantSet("left", got, 1, 2, 3, 4)
}

func blocks(t *testing.T, q *queue) {
	ctx := soon(t)
	chained := func(from, to uint64, fork byte) (all []chain.Block) {
		for n := from; n <= to; n++ {
			all = append(all, chain.Block{Number: n, Hash: chain.Hash{fork, byte(n)}, Parent: chain.Hash{fork, byte(n - 1)}, Time: 1000 + n})
		}
		return all
	}
	want := func(what string, want []chain.Block) {
		t.Helper()
		got, err := q.Blocks(ctx, 1)
		check(t, err)
		if len(got) != len(want) || len(got) > 0 && !cmp.Equal(got, want) {
			t.Fatalf("%s: %s", what, cmp.Diff(want, got))
		}
	}
	want("at first", nil)
	check(t, q.Remember(ctx, 1, chained(10, 15, 1), 0))
	check(t, q.Remember(ctx, 2, chained(90, 99, 2), 0))
	want("remembered", chained(10, 15, 1))
	check(t, q.Remember(ctx, 1, chained(16, 17, 1), 12))
	want("two more, those below 12 forgotten", chained(12, 17, 1))
	check(t, q.Remember(ctx, 1, chained(14, 15, 3), 12))
	want("a reorg to a shorter chain", append(chained(12, 13, 1), chained(14, 15, 3)...))
	check(t, q.Remember(ctx, 1, nil, 13))
	want("nothing new", append(chained(13, 13, 1), chained(14, 15, 3)...))
	odd := []chain.Block{{Number: 1<<63 + 5, Hash: chain.Hash{9}, Time: 1<<64 - 1}}
	check(t, q.Remember(ctx, 1, odd, 1<<63))
	want("a number above 2^63", odd)
}

func queueReopened(t *testing.T, q *queue) {
	q.apply(opens(q.row(1, address(1), 0), q.row(2, address(2), 0))...)
	q.lease("a", time.Hour, 1)
	before := []tx.Work{q.find(1), q.find(2)}
	q.WorkRows = q.reopen()
	if diff := cmp.Diff(before, []tx.Work{q.find(1), q.find(2)}); diff != "" {
		t.Error(diff)
	}
	wantCheckpoint(t, q, feeder, q.at)
	if n := len(q.lease("b", time.Hour, 10)); n != 1 {
		t.Errorf("%d rows for another holder, not 1", n)
	}
}

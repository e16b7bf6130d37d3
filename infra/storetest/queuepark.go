package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// wantParked compares which rows of chain 1, by number, are parked.
func (q *queue) wantParked(what string, parked map[int]bool) {
	q.t.Helper()
	for n, want := range parked {
		if got := q.find(n); got.Parked != want {
			q.t.Fatalf("%s: row %d (nonce %d) is parked: %v", what, n, got.Nonce, got.Parked)
		}
	}
}

// wantWindow checks that the first free rows from number from on are not parked, and the others
// up to to are.
func (q *queue) wantWindow(what string, from, to, free int) {
	q.t.Helper()
	parked := map[int]bool{}
	for n := from; n < to; n++ {
		parked[n] = n >= from+free
	}
	q.wantParked(what, parked)
}

func parks(t *testing.T, q *queue) {
	n := q.window
	total := n + 5
	for i := range total { // one by one, from the highest nonce down
		q.apply(opens(q.row(total-1-i, address(1), uint64(total-1-i)))...)
	}
	q.wantWindow("opened", 0, total, n)
	q.wantSet("leased", q.lease("a", time.Minute, 1000), numbers(0, n)...)

	q.apply(announce(0, block(1)))
	q.wantWindow("the first announced", 1, total, n)
	q.wantParked("announced", map[int]bool{0: false})
	q.wantSet("one more", q.lease("a", time.Minute, 1000), n)
	q.apply(watched(3), closed(2))
	q.wantParked("two more gone", map[int]bool{n + 1: false, n + 2: false, n + 3: true})
	q.apply(reopen(0, tx.Open, q.clock.Now()), reopen(3, tx.Open, q.clock.Now()))
	q.wantParked("two back", map[int]bool{0: false, 3: false, n: false, n + 1: true, n + 2: true})

	// Rivals with the same nonce have the same rows before them.
	q.apply(opens(q.row(900, address(1), uint64(n)), q.row(901, address(1), uint64(n+1)))...)
	q.wantParked("rivals", map[int]bool{n: false, 900: false, n + 1: true, 901: true})
	q.apply(opens(q.row(902, address(1), 1))...)
	q.wantParked("a rival of the second", map[int]bool{902: false, n - 1: false, n: true, 900: true})
	q.apply(seal(1, block(2)), seal(902, block(2)), seal(0, block(2)))
	q.wantParked("three gone", map[int]bool{n: false, 900: false, n + 1: false, 901: false, n + 2: true})
}

// parkedWait checks that parked rows tell the nonce they wait for, and since when.
func parkedWait(t *testing.T, q *queue) {
	n := q.window
	var rows []tx.Work
	for i := range n + 2 {
		rows = append(rows, q.row(i, address(1), uint64(7+i)))
	}
	rows[n+1].NextAt = q.clock.Now().Add(time.Hour) // not due, so it waits for nothing yet
	q.apply(opens(rows...)...)
	want := func(what string, nonce uint64) {
		t.Helper()
		if w := q.find(n); !w.Parked || w.WaitNonce != nonce || !w.WaitSince.Equal(rows[n].NextAt) {
			t.Errorf("%s: parked %v, waits for %d since %s", what, w.Parked, w.WaitNonce, w.WaitSince)
		}
	}
	want("behind the first", 8)
	q.lease("a", time.Minute, 1)
	check(t, q.Done(soon(t), "a", []tx.Done{{Chain: 1, Hash: hash(0), NextAt: q.clock.Now(), WaitNonce: 4}}))
	want("behind a waiting row", 4)
	for _, i := range []int{n - 1, n + 1} {
		if w := q.find(i); w.WaitNonce != 0 || !w.WaitSince.IsZero() {
			t.Errorf("row %d, parked %v, waits for %d since %s", i, w.Parked, w.WaitNonce, w.WaitSince)
		}
	}
}

func numbers(from, to int) (n []int) {
	for i := from; i < to; i++ {
		n = append(n, i)
	}
	return n
}

func largeNonces(t *testing.T, q *queue) {
	nonces := []uint64{0, 1, 1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<64 - 2, 1<<64 - 1}
	last := len(nonces) - 1
	var rows []tx.Work
	for i, nonce := range nonces {
		rows = append(rows, q.row(i, address(1), nonce))
	}
	for i := range q.window - 2 { // so that two of the rows above fit
		rows = append(rows, q.row(100+i, address(1), 0))
	}
	q.apply(opens(rows...)...)
	q.wantParked("opened", map[int]bool{0: false, 1: false, 2: true, 3: true, last: true})
	for gone := range last - 1 {
		q.apply(closed(gone))
		free, held := gone+2, gone+3
		q.wantParked(fmt.Sprint("closed up to ", gone), map[int]bool{free: false})
		if held <= last {
			q.wantParked(fmt.Sprint("closed up to ", gone), map[int]bool{held: true})
		}
	}
	used := map[chain.Sequence]uint64{{Chain: 1, Sender: address(1)}: 1<<64 - 1}
	got, _, err := q.Rivals(soon(t), used, nil, 100)
	check(t, err)
	for _, w := range got {
		if w.Nonce == 1<<64-1 {
			t.Error("2^64-1 is not below itself")
		}
	}
	if !slices.ContainsFunc(got, func(w tx.Work) bool { return w.Nonce == 1<<64-2 }) {
		t.Error("2^64-2 is below 2^64-1")
	}
}

// parksApart checks that windows are separate: other keys, senders and chains have their own,
// and the expiring key has none.
func parksApart(t *testing.T, q *queue) {
	n := q.window
	var rows []tx.Work
	for i := range n + 2 {
		other := q.row(1000+i, address(2), uint64(i))
		keyed := q.row(2000+i, address(1), uint64(i))
		keyed.NonceKey = chain.NonceKey{31: 1}
		free := q.row(3000+i, address(1), 0)
		free.NonceKey = chain.ExpiringKey
		away := q.row(4000+i, address(1), uint64(i))
		away.Chain = 2
		rows = append(rows, q.row(i, address(1), uint64(i)), other, keyed, free, away)
	}
	q.apply(opens(rows...)...)
	for _, first := range []int{0, 1000, 2000} {
		q.wantWindow("opened", first, first+n+2, n)
	}
	q.wantWindow("expiring key", 3000, 3000+n+2, n+2)
	// The expiring key's nonces have no meaning.
	odd := q.row(3900, address(1), 99)
	odd.NonceKey = chain.ExpiringKey
	q.apply(opens(odd)...)
	q.wantParked("expiring key", map[int]bool{3900: false})
	q.apply(closed(0), closed(3000))
	q.wantWindow("one gone", 1, n+2, n)
	q.wantWindow("elsewhere", 1000, 1000+n+2, n)
}

// parksInBulk applies shuffled changes to one long sequence in single calls.
func parksInBulk(t *testing.T, q *queue) {
	total := 20 * q.window
	draw := rand.New(rand.NewPCG(3, 3))
	open := map[int]bool{}
	for n := range total {
		open[n] = false
	}
	for range 12 {
		var changes []tx.Change
		for _, n := range draw.Perm(total)[:total/2] {
			switch {
			case open[n] && draw.IntN(3) > 0:
				changes = append(changes, closed(n))
			case !open[n]:
				changes = append(changes, opens(q.row(n, address(1), uint64(n/2)))...)
			default:
				continue
			}
			open[n] = !open[n]
		}
		q.apply(changes...)
		q.wantRule(open, func(n int) uint64 { return uint64(n / 2) })
	}
}

// wantRule checks every open row of one sequence against the rule.
func (q *queue) wantRule(open map[int]bool, nonce func(n int) uint64) {
	q.t.Helper()
	var standing []int
	for n := range open {
		if open[n] {
			standing = append(standing, n)
		}
	}
	slices.SortFunc(standing, func(a, b int) int { return cmp.Compare(nonce(a), nonce(b)) })
	parked := map[int]bool{}
	for _, n := range standing {
		lower := slices.IndexFunc(standing, func(m int) bool { return nonce(m) == nonce(n) })
		parked[n] = lower >= q.window
	}
	q.wantParked("by the rule", parked)
}

func verdictWakes(t *testing.T, q *queue) {
	ctx := soon(t)
	for i, change := range []func(n int) tx.Change{
		func(n int) tx.Change { return announce(n, block(1)) },
		func(n int) tx.Change { return seal(n, block(1)) },
		closed,
	} {
		n := 10 * (i + 1)
		sender := address(n)
		q.apply(opens(q.row(n, sender, 0), q.row(n+1, sender, 1), q.row(n+2, sender, 2), q.row(n+3, address(n+1), 2))...)
		leased := q.lease("a", time.Hour, 10)
		q.wantSet("leased", leased, n, n+1, n+2, n+3)
		later := q.clock.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
		check(t, q.Done(ctx, "a", []tx.Done{
			{Chain: 1, Hash: hash(n), NextAt: later},
			{Chain: 1, Hash: hash(n + 1), NextAt: later, WaitNonce: 1},
			{Chain: 1, Hash: hash(n + 2), NextAt: later},               // it does not wait
			{Chain: 1, Hash: hash(n + 3), NextAt: later, WaitNonce: 1}, // in another sequence
		}))
		q.wantSet("nothing is due", q.lease("b", time.Hour, 10))
		q.apply(change(n))
		q.wantSet("woken", q.lease("b", time.Hour, 10), n+1)
		if got := q.find(n + 3); !got.NextAt.Equal(later) {
			t.Fatalf("a row of another sequence is due %s", got.NextAt)
		}
		q.apply(closed(n+1), closed(n+2), closed(n+3))
	}
}

// verdictRepeats checks that repeating a row's verdict wakes no row.
func verdictRepeats(t *testing.T, q *queue) {
	later := q.clock.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	for i, change := range []tx.Change{announce(0, block(1)), seal(10, block(1))} {
		n := 10 * i
		q.apply(opens(q.row(n, address(n), 0), q.row(n+1, address(n), 1))...)
		q.wantSet("leased", q.lease("a", time.Hour, 10), n, n+1)
		q.apply(change)
		check(t, q.Done(soon(t), "a", []tx.Done{{Chain: 1, Hash: hash(n + 1), NextAt: later, WaitNonce: 1}}))
		q.apply(change)
		if got := q.find(n + 1); !got.NextAt.Equal(later) {
			t.Errorf("the same verdict again: the follower is due %s, was %s", got.NextAt, later)
		}
	}
}

// verdictThenAttempt checks that an attempt recorded after a verdict, in the same batch, says when
// the follower is due.
func verdictThenAttempt(t *testing.T, q *queue) {
	later := q.clock.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	q.apply(opens(q.row(1, address(1), 0), q.row(2, address(1), 1))...)
	q.wantSet("leased", q.lease("a", time.Hour, 10), 1, 2)
	check(t, q.Done(soon(t), "a", []tx.Done{{Chain: 1, Hash: hash(2), NextAt: later, WaitNonce: 1}}))
	q.apply(announce(1, block(1)), on(2, func(c *tx.Change) {
		c.Attempt = &tx.Attempted{Number: 1, At: q.clock.Now().UTC().Truncate(time.Microsecond), NextAt: later}
	}))
	if got := q.find(2); !got.NextAt.Equal(later) {
		t.Errorf("the follower is due %s, not %s", got.NextAt, later)
	}
}

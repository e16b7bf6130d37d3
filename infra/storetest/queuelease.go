package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

func leaseDue(t *testing.T, q *queue) {
	now := q.clock.Now()
	var rows []tx.Work
	for n, age := range []time.Duration{3, 9, 1, 7, 5, -3600} { // seconds past due
		w := q.row(n, address(n), 0)
		w.NextAt = now.Add(-age * time.Second).UTC().Truncate(time.Microsecond)
		rows = append(rows, w)
	}
	elsewhere := q.row(100, address(1), 0)
	elsewhere.Chain = 2
	q.apply(opens(append(rows, elsewhere)...)...)
	first := q.lease("a", time.Minute, 2)
	q.wantHashes("the oldest two", first, 1, 3)
	if diff := cmp.Diff([]tx.Work{rows[1], rows[3]}, first); diff != "" {
		t.Error("leased rows:", diff)
	}
	q.wantHashes("the others", q.lease("b", time.Minute, 10), 4, 0, 2)
	q.wantHashes("nothing more", q.lease("a", time.Minute, 10))
	work, _, err := q.Lease(soon(t), 2, "a", time.Minute, 10, 10)
	check(t, err)
	q.wantHashes("the other chain", work, 100)
}

func leaseUntil(t *testing.T, q *queue) {
	ctx := soon(t)
	ask := func(limit int) (int, time.Duration) {
		t.Helper()
		work, until, err := q.Lease(ctx, 1, "a", time.Hour, limit, limit)
		check(t, err)
		return len(work), until
	}
	if n, until := ask(5); n != 0 || until != horizon {
		t.Fatalf("an empty queue: %d rows, the next in %s", n, until)
	}
	due := func(n int, in time.Duration) tx.Work {
		w := q.row(n, address(n), 0)
		w.NextAt = q.clock.Now().Add(in)
		return w
	}
	q.apply(opens(due(1, 24*time.Hour))...)
	if n, until := ask(5); n != 0 || until != horizon {
		t.Fatalf("a row due tomorrow: %d rows, the next in %s", n, until)
	}
	q.apply(opens(due(2, 20*time.Second))...)
	if n, until := ask(5); n != 0 || until > 20*time.Second || until < 15*time.Second {
		t.Fatalf("a row due in 20 s: %d rows, the next in %s", n, until)
	}
	q.apply(opens(due(3, -time.Second), due(4, -time.Second), due(5, -time.Second))...)
	if n, until := ask(2); n != 2 || until != 0 {
		t.Fatalf("two of three due: %d rows, the next in %s", n, until)
	}
	// Rows leased by others do not count in until: asking again at once would find nothing.
	if n, until := ask(2); n != 1 || until > 20*time.Second || until < 15*time.Second {
		t.Fatalf("the last due: %d rows, the next in %s", n, until)
	}
	// A row with a shorter lease may count, until its lease lapses.
	q.apply(opens(due(6, -time.Second))...)
	work, until, err := q.Lease(ctx, 1, "b", 5*time.Second, 5, 5)
	check(t, err)
	if len(work) != 1 || until == 0 || until > 20*time.Second {
		t.Fatalf("leased for 5 s: %d rows, the next in %s", len(work), until)
	}
}

func leaseExclusive(t *testing.T, q *queue) {
	ctx := soon(t)
	const rows, holders = 800, 8
	var all []tx.Work
	for n := range rows {
		all = append(all, q.row(n, address(n), 0))
	}
	q.apply(opens(all...)...)
	var mu sync.Mutex
	holder := map[chain.Hash]string{}
	var working sync.WaitGroup
	for h := range holders {
		working.Go(func() {
			name := fmt.Sprint("holder-", h)
			for {
				work, until, err := q.Lease(ctx, 1, name, time.Hour, 7, 7)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, w := range work {
					if other, taken := holder[w.Hash]; taken {
						t.Errorf("%s and %s both hold %s", other, name, w.Hash)
					}
					holder[w.Hash] = name
				}
				mu.Unlock()
				if len(work) == 0 && until > 0 {
					return
				}
			}
		})
	}
	working.Wait()
	if len(holder) != rows {
		t.Errorf("%d rows of %d were leased", len(holder), rows)
	}
}

func leaseLapses(t *testing.T, q *queue) {
	const ttl = 400 * time.Millisecond
	q.apply(opens(q.row(1, address(1), 0), q.row(2, address(2), 0))...)
	q.wantSet("a", q.lease("a", ttl, 10), 1, 2)
	q.clock.Elapse(ttl / 2)
	q.wantSet("b, while a's leases run", q.lease("b", ttl, 10))
	q.clock.Elapse(ttl)
	q.wantSet("b, after a's leases lapsed", q.lease("b", time.Minute, 10), 1, 2)
	q.wantSet("a, while b's leases run", q.lease("a", ttl, 10))
}

func leaseHolds(t *testing.T, q *queue) {
	at := q.clock.Now().Add(-time.Hour)
	// A predecessor, and a row that waits for its nonce.
	q.apply(opens(q.row(1, address(1), 0), q.row(2, address(1), 1))...)
	q.lease("a", time.Hour, 10)
	check(t, q.Done(soon(t), "a", []tx.Done{{Chain: 1, Hash: hash(2), NextAt: at, WaitNonce: 1}}))
	q.wantSet("a", q.lease("a", time.Hour, 10), 2)
	nobody := func(after string) {
		t.Helper()
		q.wantSet("b after "+after, q.lease("b", time.Hour, 10))
	}
	q.apply(on(2, func(c *tx.Change) { c.Attempt = &tx.Attempted{Number: 1, At: at, NextAt: at} }))
	nobody("a recorded attempt")
	_, err := q.Wake(soon(t), map[chain.Sequence]uint64{{Chain: 1, Sender: address(1)}: 1})
	check(t, err)
	nobody("a wake")
	_, err = q.Advance(soon(t), 1, 1<<62)
	check(t, err)
	nobody("an advance")
	q.apply(announce(1, block(1)))
	nobody("a verdict on its predecessor")
}

func done(t *testing.T, q *queue) {
	ctx, now := soon(t), q.clock.Now().UTC().Truncate(time.Microsecond)
	q.apply(opens(q.row(1, address(1), 0), q.row(2, address(2), 0))...)
	q.lease("a", time.Hour, 10)
	sent := now.Add(-time.Second)
	check(t, q.Done(ctx, "a", []tx.Done{
		{Chain: 1, Hash: hash(1), Attempts: 1, NextAt: now.Add(-time.Millisecond), SentAt: sent, Note: "taken by 2 of 3"},
		{Chain: 1, Hash: hash(2), Attempts: 0, NextAt: now.Add(time.Hour), Note: "nobody reached"},
		{Chain: 1, Hash: hash(3), Attempts: 9, NextAt: now}, // a missing row
	}))
	one, two := q.find(1), q.find(2)
	if one.Attempts != 1 || !one.SentAt.Equal(sent) || one.Note != "taken by 2 of 3" || !one.NextAt.Equal(now.Add(-time.Millisecond)) {
		t.Errorf("after an attempt: %+v", one)
	}
	if two.Attempts != 0 || !two.SentAt.IsZero() || two.Note != "nobody reached" || !two.NextAt.Equal(now.Add(time.Hour)) {
		t.Errorf("without an attempt: %+v", two)
	}
	q.wantSet("due again", q.lease("b", time.Hour, 10), 1)
	check(t, q.Done(ctx, "b", []tx.Done{{Chain: 1, Hash: hash(1), Attempts: 1, NextAt: now.Add(time.Hour), Note: "skipped"}}))
	if got := q.find(1); !got.SentAt.Equal(sent) || got.Note != "skipped" {
		t.Errorf("done without an attempt: %+v", got)
	}
	check(t, q.Done(ctx, "b", nil))
}

func doneByOthers(t *testing.T, q *queue) {
	ctx, now := soon(t), q.clock.Now()
	const ttl = 300 * time.Millisecond
	say := func(holder string, n int) {
		t.Helper()
		check(t, q.Done(ctx, holder, []tx.Done{{Chain: 1, Hash: hash(n), Attempts: 40, NextAt: now.Add(-time.Minute), Note: "by " + holder, SentAt: now, WaitNonce: 1}}))
	}
	q.apply(opens(q.row(1, address(1), 0), q.row(2, address(2), 0), q.row(3, address(3), 0))...)
	q.wantSet("a", q.lease("a", ttl, 10), 1, 2, 3)
	before := q.find(1)
	say("b", 1)
	if diff := cmp.Diff(before, q.find(1)); diff != "" {
		t.Error("another holder's done:", diff)
	}
	q.apply(announce(2, block(9)), watched(3))
	for _, n := range []int{2, 3} {
		before := q.find(n)
		say("a", n)
		if diff := cmp.Diff(before, q.find(n)); diff != "" {
			t.Error("done on a row no longer open:", diff)
		}
	}
	q.clock.Elapse(2 * ttl)
	q.wantSet("b", q.lease("b", time.Hour, 10), 1)
	before = q.find(1)
	say("a", 1)
	if diff := cmp.Diff(before, q.find(1)); diff != "" {
		t.Error("done after the lease went to another:", diff)
	}
	q.wantSet("a, while b holds it", q.lease("a", time.Hour, 10))
	say("b", 1)
	q.wantSet("a, after b is done", q.lease("a", time.Hour, 10), 1)
}

func waitNonce(t *testing.T, q *queue) {
	ctx, past := soon(t), q.clock.Now().Add(-time.Hour)
	q.apply(opens(q.row(1, address(1), 7))...)
	report := func(wait uint64) tx.Work {
		t.Helper()
		q.wantSet("leased", q.lease("a", time.Hour, 10), 1)
		check(t, q.Done(ctx, "a", []tx.Done{{Chain: 1, Hash: hash(1), NextAt: past, WaitNonce: wait}}))
		return q.find(1)
	}
	began := q.clock.Now()
	first := report(6)
	if first.WaitNonce != 6 || first.WaitSince.Before(began.Add(-clockSlack)) || first.WaitSince.After(q.clock.Now().Add(clockSlack)) {
		t.Fatalf("waiting since %s for %d, began %s", first.WaitSince, first.WaitNonce, began)
	}
	q.clock.Elapse(10 * time.Millisecond)
	if second := report(7); second.WaitNonce != 7 || !second.WaitSince.Equal(first.WaitSince) {
		t.Fatalf("waiting since %s for %d, at first since %s", second.WaitSince, second.WaitNonce, first.WaitSince)
	}
	if third := report(0); third.WaitNonce != 0 || !third.WaitSince.IsZero() {
		t.Fatalf("no longer waiting: %+v", third)
	}
}

// workersBeside has workers lease, report and be interrupted, while a feeder opens and ends
// rows. No row has two holders, and in the end rows are parked by the rule.
func workersBeside(t *testing.T, q *queue) {
	ctx := soon(t)
	const workers, senders, each = 4, 3, 30
	var mu sync.Mutex
	held := map[chain.Hash]string{}
	fed := make(chan struct{})
	var working sync.WaitGroup
	for i := range workers {
		working.Go(func() {
			name := fmt.Sprint("worker-", i)
			for {
				work, _, err := q.Lease(ctx, 1, name, time.Hour, 5, 5)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				var said []tx.Done
				var hashes []chain.Hash
				for _, w := range work {
					if other := held[w.Hash]; other != "" {
						t.Errorf("%s and %s both hold %s", other, name, w.Hash)
					}
					held[w.Hash] = name
					hashes = append(hashes, w.Hash)
					said = append(said, tx.Done{Chain: 1, Hash: w.Hash, Attempts: w.Attempts + 1, NextAt: q.clock.Now().Add(-time.Second), WaitNonce: w.Nonce})
				}
				mu.Unlock()
				if _, err := q.Find(ctx, 1, hashes); err != nil { // some work
					t.Error(err)
				}
				mu.Lock()
				for _, hash := range hashes {
					delete(held, hash) // before Done, so that no worker is blamed wrongly
				}
				mu.Unlock()
				if err := q.Done(ctx, name, said); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-fed:
					return
				default:
				}
			}
		})
	}
	open := make([]map[int]bool, senders)
	for s := range senders {
		open[s] = map[int]bool{}
		for i := range each {
			q.apply(opens(q.row(s*each+i, address(s), uint64(i)))...)
			open[s][s*each+i] = true
			if i%3 == 2 {
				end := s*each + i - 2
				q.apply(announce(end, block(uint64(end))))
				delete(open[s], end)
			}
		}
	}
	close(fed)
	working.Wait()
	for s := range senders {
		q.wantRule(open[s], func(n int) uint64 { return uint64(n - s*each) })
	}
}

package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// of is a due row of an account, in a sequence of its own.
func (q *queue) of(account byte, n int) tx.Work {
	w := q.row(n, address(n), 0)
	w.Account = tx.Account{account}
	return w
}

// say reports on a leased row of an account, which is due again after in.
func (q *queue) say(holder string, w tx.Work, s tx.Standing, in time.Duration) {
	q.t.Helper()
	check(q.t, q.Done(soon(q.t), holder, []tx.Done{{
		Chain: 1, Hash: w.Hash, Attempts: w.Attempts + 1, SentAt: q.clock.Now(), NextAt: q.clock.Now().Add(in),
		Account: w.Account, Standing: s,
	}}))
}

// pause is how long accounts are on hold here; passed is a little longer.
const (
	pause  = 300 * time.Millisecond
	passed = pause + 50*time.Millisecond
)

// holds follows an account from the first report that it is unable until its recovery.
func holds(t *testing.T, q *queue) {
	var rows []tx.Work
	for n := range 12 {
		rows = append(rows, q.of(1, n))
	}
	q.apply(opens(append(rows, q.of(2, 100))...)...)
	first := q.lease("a", time.Minute, 1)
	if len(first) != 1 || !first[0].HeldSince.IsZero() {
		t.Fatalf("leased %+v", first)
	}
	q.say("a", first[0], tx.Unable, pause)
	others := q.leaseAll("a", time.Minute)
	q.wantSet("another account is not concerned", others, 100)
	held := q.find(1)
	if first[0].Hash == held.Hash {
		held = q.find(2)
	}
	if held.HeldSince.IsZero() || held.HeldSince.After(q.clock.Now().Add(clockSlack)) {
		t.Errorf("set aside since %s", held.HeldSince)
	}

	// One row probes, each time another, until one succeeds.
	probed := map[chain.Hash]bool{first[0].Hash: true}
	for range 3 {
		q.clock.Elapse(passed)
		probe := q.leaseAll("a", time.Minute)
		if len(probe) != 1 || probe[0].HeldSince.IsZero() || probed[probe[0].Hash] {
			t.Fatalf("probing: %+v", probe)
		}
		probed[probe[0].Hash] = true
		q.say("a", probe[0], tx.Unable, pause)
	}
	q.clock.Elapse(passed)
	var since time.Time
	for _, want := range []int{1, 2, 4} {
		let := q.leaseAll("a", time.Minute)
		if len(let) != want {
			t.Fatalf("%d rows let go, want %d", len(let), want)
		}
		if !let[0].HeldSince.After(since) {
			t.Errorf("on hold since %s, though one has done well after %s", let[0].HeldSince, since)
		}
		since = let[0].HeldSince
		for _, w := range let {
			q.say("a", w, tx.Able, time.Hour)
		}
	}
	if left := q.leaseAll("a", time.Minute); len(left) != 12-1-2-4 {
		t.Fatalf("%d rows let go of the last 5", len(left))
	}
}

// holdOfClient checks that a client's hold delays no row of another client with the same fee
// payer, and that each client's account is probed separately.
func holdOfClient(t *testing.T, q *queue) {
	const same = 20
	var rows []tx.Work
	for n := range 2 * same {
		client := []string{"a", "b"}[n/same]
		w := q.dueOf(client, n, time.Minute)
		w.Account = tx.AccountOf(tx.Accepted{Chain: 1, Sender: address(0), Client: client})
		rows = append(rows, w)
	}
	q.apply(opens(rows...)...)
	report := func(client string, work []tx.Work, s tx.Standing) {
		for _, w := range work {
			if w.Client == client {
				q.say("w", w, s, pause)
			}
		}
	}
	report("a", q.lease("w", time.Minute, 2), tx.Unable)
	q.wantCounts("beside a hold of another client", q.leaseAll("w", time.Minute), map[string]int{"b": same - 1})
	q.clock.Elapse(passed)
	probe := q.leaseAll("w", time.Minute)
	q.wantCounts("the probe", probe, map[string]int{"a": 1})
	report("a", probe, tx.Unable)
	all, err := q.Find(soon(t), 1, []chain.Hash{rows[same].Hash, rows[2*same-1].Hash})
	check(t, err)
	for _, w := range all {
		if !w.HeldSince.IsZero() {
			t.Errorf("a row of b is on hold since %s", w.HeldSince)
		}
		q.say("w", w, tx.Unable, pause)
	}
	q.clock.Elapse(passed)
	q.wantCounts("a probe of each", q.leaseAll("w", time.Minute), map[string]int{"a": 1, "b": 1})
}

// leaseAll leases until nothing more is due at once.
func (q *queue) leaseAll(holder string, ttl time.Duration) (all []tx.Work) {
	q.t.Helper()
	for {
		work, until, err := q.Lease(soon(q.t), 1, holder, ttl, 50, 50)
		check(q.t, err)
		if all = append(all, work...); len(work) == 0 && until > 0 {
			return all
		}
	}
}

// holdEnds checks that an account without remaining rows is no longer on hold.
func holdEnds(t *testing.T, q *queue) {
	q.apply(opens(q.of(1, 1), q.of(1, 2))...)
	for _, w := range q.leaseAll("a", time.Minute) {
		q.say("a", w, tx.Unable, pause)
	}
	q.clock.Elapse(passed)
	probe := q.leaseAll("a", time.Minute)
	if len(probe) != 1 {
		t.Fatalf("probing: %+v", probe)
	}
	q.say("a", probe[0], tx.Able, time.Hour)
	last := q.leaseAll("a", time.Minute)
	if len(last) != 1 || last[0].Hash == probe[0].Hash || last[0].HeldSince.IsZero() {
		t.Fatalf("the last of them: %+v", last)
	}
	q.say("a", last[0], tx.Able, time.Hour)
	q.leaseAll("a", time.Minute) // finds the hold empty
	q.apply(opens(q.of(1, 3))...)
	if free := q.leaseAll("a", time.Minute); len(free) != 1 || !free[0].HeldSince.IsZero() {
		t.Errorf("leased %+v; want it leased as any other row", free)
	}
}

// holdOutlives checks that neither the probing row nor the rows set aside are lost, when a
// holder dies or a row gets a verdict.
func holdOutlives(t *testing.T, q *queue) {
	q.apply(opens(q.of(1, 1), q.of(1, 2), q.of(1, 3))...)
	for _, w := range q.leaseAll("a", time.Minute) {
		q.say("a", w, tx.Unable, pause)
	}
	q.clock.Elapse(passed)
	const ttl = 200 * time.Millisecond
	dead := q.lease("dead", ttl, 10)
	if len(dead) != 1 {
		t.Fatalf("probing: %+v", dead)
	}
	q.clock.Elapse(2 * ttl)
	next := q.leaseAll("b", ttl)
	if len(next) == 0 || next[0].HeldSince.IsZero() {
		t.Fatalf("after the holder's death: %+v", next)
	}
	for n := 1; n <= 3; n++ {
		q.apply(announce(n, block(uint64(n))), reopen(n, tx.Open, q.clock.Now().Add(-time.Second)))
		if w := q.find(n); !w.HeldSince.IsZero() {
			t.Errorf("row %d is set aside since %s though a verdict came and went", n, w.HeldSince)
		}
	}
	// All are due again, and the account is still on hold.
	for range 20 {
		for _, w := range q.leaseAll("b", ttl) {
			q.say("b", w, tx.Able, time.Hour)
		}
		q.clock.Elapse(ttl)
	}
	for n := 1; n <= 3; n++ {
		if w := q.find(n); w.Attempts == 0 || !w.HeldSince.IsZero() {
			t.Errorf("row %d was attempted %d times, set aside since %s", n, w.Attempts, w.HeldSince)
		}
	}
}

// holdOfNobody checks that rows without an account are never set aside.
func holdOfNobody(t *testing.T, q *queue) {
	q.apply(opens(q.of(0, 1), q.of(0, 2))...)
	work := q.lease("a", time.Minute, 1)
	q.say("a", work[0], tx.Unable, pause)
	if left := q.leaseAll("a", time.Minute); len(left) != 1 {
		t.Errorf("leased %+v", left)
	}
}

// holdUnclear checks that an inconclusive probe is followed by another.
func holdUnclear(t *testing.T, q *queue) {
	q.apply(opens(q.of(1, 1), q.of(1, 2))...)
	for _, w := range q.leaseAll("a", time.Minute) {
		q.say("a", w, tx.Unable, pause)
	}
	q.clock.Elapse(passed)
	probe := q.leaseAll("a", time.Minute)
	if len(probe) != 1 {
		t.Fatalf("probing: %+v", probe)
	}
	q.say("a", probe[0], tx.Unclear, pause)
	q.wantSet("not before it is due itself", q.leaseAll("a", time.Minute))
	q.clock.Elapse(passed)
	if next := q.leaseAll("a", time.Minute); len(next) != 1 || next[0].Hash == probe[0].Hash {
		t.Errorf("probing next: %+v", next)
	}
}

// holdUnasked checks that rows with their own reasons to wait do not use up an account's
// probes: another probe follows at once.
func holdUnasked(t *testing.T, q *queue) {
	const crowd = 5
	var rows []tx.Work
	for n := range crowd {
		rows = append(rows, q.of(1, n))
	}
	q.apply(opens(rows...)...)
	for _, w := range q.leaseAll("a", time.Minute) {
		q.say("a", w, tx.Unable, pause)
	}
	q.clock.Elapse(passed)
	looked := map[chain.Hash]bool{}
	for range crowd - 1 {
		probe := q.leaseAll("a", time.Minute)
		if len(probe) != 1 || probe[0].HeldSince.IsZero() || looked[probe[0].Hash] {
			t.Fatalf("probing after %d that asked nobody: %+v", len(looked), probe)
		}
		looked[probe[0].Hash] = true
		q.say("a", probe[0], tx.Unasked, time.Hour)
	}
	last := q.leaseAll("a", time.Minute)
	if len(last) != 1 || looked[last[0].Hash] {
		t.Fatalf("the last: %+v", last)
	}
	q.say("a", last[0], tx.Unable, pause)
	q.wantSet("an account that is unable yet", q.leaseAll("a", time.Minute))
}

// manyAside checks that many rows of an account on hold do not delay another row: a few calls
// set them all aside.
func manyAside(t *testing.T, q *queue) {
	const crowd = 1200
	rows := []tx.Work{}
	for n := range crowd {
		rows = append(rows, q.of(1, n))
	}
	late := q.of(2, crowd)
	late.NextAt = late.NextAt.Add(time.Second) // behind all of them
	q.apply(opens(append(rows, late)...)...)
	for _, w := range q.lease("a", time.Minute, 5) {
		q.say("a", w, tx.Unable, time.Hour)
	}
	for calls := 1; ; calls++ {
		work := q.lease("a", time.Minute, 20)
		if len(work) > 0 {
			q.wantSet("leased", work, crowd)
			return
		}
		if calls == 20 {
			t.Fatalf("not leased by %d calls", calls)
		}
	}
}

// repeatsBounded checks that first attempts get their share, however many repeats are due.
func repeatsBounded(t *testing.T, q *queue) {
	var rows []tx.Work
	for n := range 30 {
		rows = append(rows, q.row(n, address(n), 0))
	}
	q.apply(opens(rows...)...)
	for _, w := range q.lease("a", time.Minute, 30) {
		check(t, q.Done(soon(t), "a", []tx.Done{{Chain: 1, Hash: w.Hash, Attempts: 1, NextAt: w.NextAt}}))
	}
	fresh := q.row(100, address(100), 0)
	fresh.NextAt = fresh.NextAt.Add(30 * time.Second) // behind all of them
	later := q.row(101, address(101), 0)
	later.NextAt = q.clock.Now().Add(20 * time.Second)
	q.apply(opens(fresh, later)...)
	count := func(work []tx.Work) (repeats, firsts int) {
		for _, w := range work {
			if w.Attempts > 0 {
				repeats++
			} else {
				firsts++
			}
		}
		return repeats, firsts
	}
	work, until, err := q.Lease(soon(t), 1, "a", time.Minute, 8, 5)
	check(t, err)
	if repeats, firsts := count(work); repeats != 5 || firsts != 1 {
		t.Errorf("%d repeats and %d first attempts; want 5 and 1", repeats, firsts)
	}
	if until < 15*time.Second {
		t.Errorf("the next first attempt is due in 20 s, not %s", until)
	}
	work, until, err = q.Lease(soon(t), 1, "a", time.Minute, 8, 0)
	check(t, err)
	if len(work) != 0 || until < 15*time.Second {
		t.Errorf("without repeats: %d rows, the next in %s", len(work), until)
	}
	work, _, err = q.Lease(soon(t), 1, "a", time.Minute, 50, 50)
	check(t, err)
	if repeats, firsts := count(work); repeats != 25 || firsts != 0 {
		t.Errorf("%d repeats and %d first attempts; want 25 and 0", repeats, firsts)
	}
}

// holdsBeside has workers lease and report good and bad results of one account concurrently. In
// the end every row has been attempted, and none is left aside.
func holdsBeside(t *testing.T, q *queue) {
	const workers, rows = 4, 120
	var all []tx.Work
	for n := range rows {
		all = append(all, q.of(1, n))
	}
	q.apply(opens(all...)...)
	ctx := soon(t)
	var working sync.WaitGroup
	var mu sync.Mutex
	well := map[chain.Hash]bool{}
	turns := 0
	for i := range workers {
		working.Go(func() {
			name := fmt.Sprint("worker-", i)
			for {
				mu.Lock()
				over := len(well) == rows
				mu.Unlock()
				if over || ctx.Err() != nil {
					return
				}
				work, _, err := q.Lease(ctx, 1, name, 500*time.Millisecond, 5, 5)
				if err != nil {
					t.Error(err)
					return
				}
				var said []tx.Done
				mu.Lock()
				for _, w := range work {
					turns++
					d := tx.Done{Chain: 1, Hash: w.Hash, Attempts: w.Attempts + 1, Account: w.Account, Standing: tx.Able, NextAt: q.clock.Now().Add(time.Hour)}
					if turns%7 == 3 {
						d.Standing, d.NextAt = tx.Unable, q.clock.Now()
					} else {
						well[w.Hash] = true
					}
					said = append(said, d)
				}
				mu.Unlock()
				if err := q.Done(ctx, name, said); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	if len(well) != rows {
		t.Fatalf("%d of %d rows did well", len(well), rows)
	}
	aside := slices.DeleteFunc(all, func(w tx.Work) bool {
		found, err := q.Find(soon(t), 1, []chain.Hash{w.Hash})
		check(t, err)
		return found[0].HeldSince.IsZero()
	})
	if len(aside) > 0 {
		t.Errorf("%d rows that did well are set aside", len(aside))
	}
}

package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// accountOf is a client's account for row n, apart from all others.
func accountOf(client string, n int) tx.Account {
	digest := chain.Keccak(fmt.Append(nil, client, " ", n))
	return tx.Account(digest[:16])
}

// joins makes clients further owners of row n, each on an account of its own, due now.
func (q *queue) joins(n int, clients ...string) (changes []tx.Change) {
	for _, client := range clients {
		changes = append(changes, on(n, func(c *tx.Change) {
			c.Join = &tx.Owner{Client: client, Account: accountOf(client, n), NextAt: q.clock.Now().Add(-time.Second).UTC().Truncate(time.Microsecond)}
		}))
	}
	return changes
}

// wantTurn checks that one row was leased, in a client's turn and on its account.
func (q *queue) wantTurn(what string, got []tx.Work, n int, client string) tx.Work {
	q.t.Helper()
	if len(got) != 1 || got[0].Hash != hash(n) || got[0].Client != client || client != "b" && got[0].Account != accountOf(client, n) {
		q.t.Fatalf("%s: leased %+v; want row %d in the turn of %q", what, got, n, client)
	}
	return got[0]
}

// report reports on a leased row.
func (q *queue) report(w tx.Work, forAll bool, s tx.Standing, in time.Duration) {
	q.t.Helper()
	check(q.t, q.Done(soon(q.t), "w", []tx.Done{{
		Chain: 1, Hash: w.Hash, Attempts: w.Attempts + 1, NextAt: q.clock.Now().Add(in), Account: w.Account, Standing: s, ForAll: forAll,
	}}))
}

// ownersInTurn checks that a row is due in the turn of each client that has submitted it, however
// many rows of the first client come before it, and that only one of these leases runs.
func ownersInTurn(t *testing.T, q *queue) {
	q.flood("b", 1000, 1400)
	q.apply(opens(q.dueOf("b", 1, time.Second))...)
	q.apply(append(q.joins(1, "a", "b", "a"), q.joins(99, "a")...)...)
	if got := q.find(1); got.Client != "b" || !got.Shared {
		t.Errorf("the row is %+v", got)
	}
	work := q.lease("w", time.Hour, 2)
	q.wantCounts("two of two clients", work, map[string]int{"a": 1, "b": 1})
	for _, w := range work {
		if w.Client == "a" {
			q.wantTurn("the shared row", []tx.Work{w}, 1, "a")
		}
	}
	q.wantCounts("while it is leased", q.lease("w", time.Hour, 1000), map[string]int{"b": 399})

	// Sharing gives no turns beyond those of each client.
	q.apply(opens(q.dueOf("a", 2, 0), q.dueOf("a", 3, 0), q.dueOf("a", 4, 0))...)
	q.flood("b", 2000, 2030)
	var all []tx.Change
	for n := 2000; n < 2030; n++ {
		all = append(all, q.joins(n, "c")...)
	}
	q.apply(all...)
	leased := map[chain.Hash]bool{}
	count := map[string]int{}
	for range 9 {
		for _, w := range q.lease("w", time.Hour, 1) {
			if leased[w.Hash] {
				t.Errorf("row %s was leased twice", w.Hash)
			}
			leased[w.Hash] = true
			count[w.Client]++
		}
	}
	if count["a"] != 3 || count["b"] != 3 || count["c"] != 3 {
		t.Errorf("one by one: %v", count)
	}
	if rest := q.leaseAll("w", time.Hour); len(rest) != 33-9 {
		t.Errorf("%d rows are left", len(rest))
	}
}

// ownersApart checks that each owner has its own due time and hold.
func ownersApart(t *testing.T, q *queue) {
	q.apply(opens(q.dueOf("b", 1, time.Minute))...)
	first := q.wantTurn("before a", q.lease("w", time.Hour, 1), 1, "b")
	q.report(first, false, tx.Unable, time.Hour) // as if b had many accounts on hold
	q.apply(q.joins(1, "a")...)
	q.report(q.wantTurn("b on hold", q.leaseAll("w", time.Hour), 1, "a"), false, tx.Unable, pause)
	q.wantSet("both on hold", q.leaseAll("w", time.Hour))
	q.clock.Elapse(passed)
	probe := q.wantTurn("a's probe", q.leaseAll("w", time.Hour), 1, "a")
	if probe.HeldSince.IsZero() {
		t.Error("the probe of a's account is no probe")
	}
	q.report(probe, false, tx.Unclear, pause)
	q.wantSet("not before it is due", q.leaseAll("w", time.Hour))
	q.clock.Elapse(passed)
	q.report(q.wantTurn("a again", q.leaseAll("w", time.Hour), 1, "a"), true, tx.Able, 2*pause)
	q.wantSet("a node has it", q.leaseAll("w", time.Hour))
	q.clock.Elapse(2 * passed)
	q.wantTurn("the next in a's turn", q.leaseAll("w", time.Hour), 1, "a")
	got := q.find(1)
	if got.Attempts != 4 || got.Client != "b" || got.HeldSince.IsZero() || len(got.Owners) != 1 {
		t.Fatalf("the row is %+v", got)
	}
	if a := got.Owners[0]; a.Client != "a" || a.Account != accountOf("a", 1) || !a.HeldSince.IsZero() || !got.In(func(c string) bool { return c == "a" }).HeldSince.IsZero() {
		t.Errorf("the owner is %+v", a)
	}
}

// ownersTogether checks what concerns all owners: attempts that all count, waking, verdicts.
func ownersTogether(t *testing.T, q *queue) {
	row := q.row(2, address(1), 1)
	row.Account = accountOf("", 2)
	q.apply(opens(q.row(1, address(1), 0), row)...)
	q.apply(announce(1, block(1)))
	q.apply(append(opens(q.row(3, address(1), 2)), q.joins(2, "a")...)...)
	turns := func(what string, want ...string) {
		t.Helper()
		got := map[string]bool{}
		for range 4 {
			for _, w := range q.leaseAll("w", time.Hour) {
				if w.Hash == hash(2) {
					got[w.Client] = true
				}
				q.report(w, false, tx.Unclear, time.Hour)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: due in the turns of %v; want %q", what, got, want)
		}
	}
	turns("at first", "", "a")
	q.apply(reopen(1, tx.Open, q.clock.Now().Add(time.Hour)))
	q.apply(announce(2, block(2)))
	turns("with a verdict")
	q.apply(reopen(2, tx.Open, q.clock.Now().Add(-time.Second)))
	turns("without it", "", "a")

	q.apply(on(2, func(c *tx.Change) {
		c.Attempt = &tx.Attempted{Number: 50, At: q.clock.Now(), NextAt: q.clock.Now().Add(-time.Second)}
	}))
	work := q.leaseAll("w", time.Hour)
	check(t, q.Done(soon(t), "w", []tx.Done{{Chain: 1, Hash: hash(2), Attempts: 51, NextAt: q.clock.Now().Add(time.Hour), Account: work[0].Account, WaitNonce: 1, ForAll: true}}))
	turns("waiting for a nonce")
	q.apply(announce(1, block(3)))
	turns("when it is used", "", "a")

	q.apply(closed(2))
	q.apply(opens(row)...)
	turns("closed and opened again", "")
	q.apply(q.joins(2, "a")...)
	q.apply(seal(2, block(4)))
	_, err := q.DropSealed(soon(t), 1, 100)
	check(t, err)
	q.apply(opens(row)...)
	turns("dropped and opened again", "")
}

// ownersClaimed checks that a client's many claims do not park a claim of another client, of which
// the first one has the bytes too.
func ownersClaimed(t *testing.T, q *queue) {
	var rows []tx.Work
	for n := range q.window + 2 {
		w := q.dueOf("b", n, time.Minute)
		w.Nonce, w.Claimed = uint64(n), true
		rows = append(rows, w)
	}
	last := q.window + 1
	q.apply(opens(rows...)...)
	q.wantParked("before a", map[int]bool{0: false, q.window: true, last: true})
	q.apply(q.joins(last, "a")...)
	q.wantParked("after a", map[int]bool{0: false, q.window: true, last: false})
	for _, w := range q.lease("w", time.Hour, 2) {
		if w.Client == "a" {
			q.wantTurn("the claim", []tx.Work{w}, last, "a")
			return
		}
	}
	t.Error("the claim is not due in a's turn")
}

// ownersLapse checks that a row whose holder has died is due in every owner's turn.
func ownersLapse(t *testing.T, q *queue) {
	q.apply(opens(q.dueOf("b", 1, time.Minute))...)
	q.apply(q.joins(1, "a", "c", "d")...)
	const ttl = 200 * time.Millisecond
	turns := map[string]bool{}
	for range 4 {
		work := q.leaseAll("w", ttl)
		if len(work) != 1 {
			t.Fatalf("leased %+v", work)
		}
		if turns[work[0].Client] {
			t.Errorf("a second time in the turn of %q", work[0].Client)
		}
		turns[work[0].Client] = true
		q.report(work[0], false, tx.Unclear, time.Hour)
		if work := q.leaseAll("dead", ttl); len(turns) < 4 && len(work) != 1 {
			t.Fatalf("leased %+v", work)
		}
		q.clock.Elapse(2 * ttl)
	}
	q.wantSet("all have had their turn", q.leaseAll("w", ttl))
}

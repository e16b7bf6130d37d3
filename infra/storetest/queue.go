package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Queue is the contract of the due queue and of the watcher's open transactions, which are two
// views of the same rows.
func Queue(t *testing.T, open func(t *testing.T) Opened[WorkRows]) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, q *queue)
	}{
		{"rows come back as they went in", rowsRoundTrip},
		{"apply moves the checkpoint with the changes", applyChecks},
		{"apply twice changes nothing more", applyTwice},
		{"phases", phases},
		{"recorded attempts", attempts},
		{"lease due rows, oldest first", leaseDue},
		{"how long until the next is due", leaseUntil},
		{"a row has one holder", leaseExclusive},
		{"a lease lapses", leaseLapses},
		{"a leased row stays leased when events are applied", leaseHolds},
		{"done", done},
		{"done by whom it does not concern", doneByOthers},
		{"waiting for a nonce", waitNonce},
		{"first attempts have their share", repeatsBounded},
		{"clients take turns", firstsInTurn},
		{"usage by client", usage},
		{"clients take turns with repeats", repeatsInTurn},
		{"clients take turns with probes", probesInTurn},
		{"a row is due in the turn of each owner", ownersInTurn},
		{"each owner has a due time and a hold of its own", ownersApart},
		{"what concerns all owners", ownersTogether},
		{"a claim of several owners", ownersClaimed},
		{"a lease of a row of several owners lapses", ownersLapse},
		{"an account on hold", holds},
		{"a hold is of one client", holdOfClient},
		{"a hold without rows ends", holdEnds},
		{"a hold outlives who probes", holdOutlives},
		{"nobody's account is never on hold", holdOfNobody},
		{"a probe that tells nothing", holdUnclear},
		{"a probe that asks nobody", holdUnasked},
		{"a crowd is set aside at once", manyAside},
		{"workers beside an account on hold", holdsBeside},
		{"a full window parks the rest", parks},
		{"parked rows have the nonce that they wait for", parkedWait},
		{"nonces up to 2^64-1 are in order", largeNonces},
		{"a window beside others", parksApart},
		{"many changes to one sequence at once", parksInBulk},
		{"a verdict wakes who waits", verdictWakes},
		{"the same verdict again wakes nobody", verdictRepeats},
		{"an attempt recorded after a verdict", verdictThenAttempt},
		{"next free nonce", nextFree},
		{"next free nonce of many rows", nextFreeOfMany},
		{"claims take no place of the sender's", claimsApart},
		{"a claim that is confirmed", claimsConfirmed},
		{"claims are not woken", claimsAsleep},
		{"rows of before clients are filled in", refilled},
		{"rivals", rivals},
		{"rivals shared", rivalsShared},
		{"verdicts by block", verdicts},
		{"verdicts in pages", verdictsInPages},
		{"soonest", soonest},
		{"expiring", expiring}, {"expiring shared", expiringShared},
		{"watched rows", watchedRows},
		{"waiting sequences in turn", waitingInTurn},
		{"wake", wake},
		{"advance", advance},
		{"drop sealed", dropSealed},
		{"remembered blocks", blocks},
		{"depth", depth},
		{"reopened before it is eligible", reopenedEarly},
		{"rows outlive the process", queueReopened},
		{"any changes, against a model", againstModel},
		{"workers beside a feeder", workersBeside},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := open(t)
			if o.Window < 2 {
				t.Fatal("the window under test must be at least 2")
			}
			c.run(t, &queue{t: t, WorkRows: o.Port, clock: o.Clock.orReal(), window: o.Window, reopen: o.Reopen})
		})
	}
}

// queue is a queue under test with its feeder's checkpoint.
type queue struct {
	WorkRows
	t      *testing.T
	clock  Clock
	window int
	reopen func() WorkRows
	at     eventlog.Position
}

const feeder = "feeder"

func (q *queue) apply(changes ...tx.Change) {
	q.t.Helper()
	check(q.t, q.Apply(soon(q.t), feeder, q.at, q.at+1, changes))
	q.at++
}

// row is an open row of chain 1 that is due for a while; its hash is made from n.
func (q *queue) row(n int, sender chain.Address, nonce uint64) tx.Work {
	return tx.Work{
		Chain: 1, Hash: hash(n), Sender: sender, Nonce: nonce, Phase: tx.Open,
		EligibleAt: 1_700_000_000, NextAt: q.clock.Now().Add(-time.Minute).UTC().Truncate(time.Microsecond),
	}
}

func opens(rows ...tx.Work) (changes []tx.Change) {
	for _, w := range rows {
		changes = append(changes, tx.Change{Chain: w.Chain, Hash: w.Hash, Open: &w})
	}
	return changes
}

// on is a change to row n of chain 1.
func on(n int, set func(c *tx.Change)) tx.Change {
	c := tx.Change{Chain: 1, Hash: hash(n)}
	set(&c)
	return c
}

func announce(n int, b chain.Block) tx.Change {
	return on(n, func(c *tx.Change) { c.Announce = &tx.Verdict{Status: tx.StatusExecuted, Block: b} })
}

func seal(n int, b chain.Block) tx.Change {
	return on(n, func(c *tx.Change) { c.Seal = &tx.Verdict{Status: tx.StatusExecuted, Block: b} })
}

func closed(n int) tx.Change  { return on(n, func(c *tx.Change) { c.Close = true }) }
func watched(n int) tx.Change { return on(n, func(c *tx.Change) { c.Watch = true }) }

func reopen(n int, to tx.Phase, at time.Time) tx.Change {
	return on(n, func(c *tx.Change) { c.Reopen = &tx.Reopened{To: to, At: at} })
}

func block(n uint64) chain.Block { return chain.Block{Number: n, Hash: hash(int(n) + 1_000_000)} }

// find returns row n of chain 1, or fails.
func (q *queue) find(n int) tx.Work {
	q.t.Helper()
	rows, err := q.Find(soon(q.t), 1, []chain.Hash{hash(n)})
	check(q.t, err)
	if len(rows) != 1 {
		q.t.Fatalf("row %d: found %d rows", n, len(rows))
	}
	return rows[0]
}

// lease leases rows of chain 1 and returns their numbers.
func (q *queue) lease(holder string, ttl time.Duration, limit int) []tx.Work {
	q.t.Helper()
	work, until, err := q.Lease(soon(q.t), 1, holder, ttl, limit, limit)
	check(q.t, err)
	if len(work) > limit {
		q.t.Fatalf("%d rows leased, asked for %d", len(work), limit)
	}
	if until < 0 || until > horizon {
		q.t.Fatalf("the next row is said to be due in %s", until)
	}
	return work
}

// horizon is the longest time that Lease returns in until.
const horizon = tx.Horizon

func (q *queue) wantHashes(what string, got []tx.Work, want ...int) {
	q.t.Helper()
	q.want(what, got, true, want)
}

func (q *queue) wantSet(what string, got []tx.Work, want ...int) {
	q.t.Helper()
	q.want(what, got, false, want)
}

func (q *queue) want(what string, got []tx.Work, ordered bool, want []int) {
	q.t.Helper()
	var g, w []string
	for _, row := range got {
		g = append(g, row.Hash.String())
	}
	for _, n := range want {
		w = append(w, hash(n).String())
	}
	if !ordered {
		slices.Sort(g)
		slices.Sort(w)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		q.t.Fatalf("%s: %s", what, diff)
	}
}

func rowsRoundTrip(t *testing.T, q *queue) {
	at := q.clock.Now().UTC().Truncate(time.Microsecond)
	full := tx.Work{
		Chain: 1<<64 - 1, Hash: hash(1), Sender: address(7), NonceKey: chain.NonceKey{0x80, 31: 1}, Nonce: 1<<64 - 1,
		EligibleAt: 1<<64 - 1, ExpiresAt: 1<<64 - 1, Phase: tx.Open, NextAt: at.Add(1234567 * time.Microsecond), Account: tx.Account{0xff, 15: 1},
		Client: "wallet", Bytes: 1234, Claimed: true,
	}
	bare := tx.Work{Chain: 1, Hash: hash(1), Phase: tx.Open, NextAt: at, Nonce: 1 << 63, EligibleAt: 1 << 63, ExpiresAt: 1<<63 - 1}
	q.apply(opens(full, bare)...)
	for _, want := range []tx.Work{full, bare} {
		got, err := q.Find(soon(t), want.Chain, []chain.Hash{want.Hash, hash(2)})
		check(t, err)
		if diff := cmp.Diff([]tx.Work{want}, got); diff != "" {
			t.Error(diff)
		}
	}
	if got, err := q.Find(soon(t), 1, nil); err != nil || len(got) != 0 {
		t.Errorf("nothing sought: %v, %v", got, err)
	}
	var rows []tx.Work
	var hashes []chain.Hash
	for n := range 1500 {
		rows, hashes = append(rows, q.row(100+n, address(n), 0)), append(hashes, hash(100+n))
	}
	q.apply(opens(rows...)...)
	got, err := q.Find(soon(t), 1, hashes)
	check(t, err)
	slices.SortFunc(rows, byHash)
	slices.SortFunc(got, byHash)
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Errorf("many at once: %.2000s", diff)
	}
}

func byHash(a, b tx.Work) int { return slices.Compare(a.Hash[:], b.Hash[:]) }

func applyChecks(t *testing.T, q *queue) {
	ctx := soon(t)
	q.apply(opens(q.row(1, address(1), 0))...)
	wantCheckpoint(t, q, feeder, 1)
	for _, from := range []eventlog.Position{0, 2} {
		err := q.Apply(ctx, feeder, from, 9, append(opens(q.row(2, address(1), 1)), closed(1)))
		if !errors.Is(err, eventlog.ErrMoved) {
			t.Fatalf("applied from %d: %v", from, err)
		}
	}
	q.find(1)
	if rows, err := q.Find(ctx, 1, []chain.Hash{hash(2)}); err != nil || len(rows) != 0 {
		t.Fatalf("a refused apply left %v, %v", rows, err)
	}
	wantCheckpoint(t, q, feeder, 1)
	check(t, q.Apply(ctx, "other reader", 0, 5, nil))
	wantCheckpoint(t, q, feeder, 1)
	check(t, q.MoveCheckpoint(ctx, feeder, 1, 2))
	q.at = 2
	q.apply()
	wantCheckpoint(t, q, feeder, 3)

	// Of two concurrent feeders one applies.
	var all sync.WaitGroup
	results := make([]error, 2)
	for i := range results {
		all.Go(func() { results[i] = q.Apply(ctx, feeder, 3, 4, opens(q.row(10+i, address(1), 9))) })
	}
	all.Wait()
	rows, err := q.Find(ctx, 1, []chain.Hash{hash(10), hash(11)})
	check(t, err)
	if len(rows) != 1 || (results[0] == nil) == (results[1] == nil) {
		t.Fatalf("two feeders: %v, %d rows", results, len(rows))
	}
}

func applyTwice(t *testing.T, q *queue) {
	at := q.clock.Now().Add(-time.Second)
	var changes []tx.Change
	for n := range 6 {
		changes = append(changes, opens(q.row(n, address(n), 5))...)
	}
	changes = append(changes,
		on(0, func(c *tx.Change) {
			c.Attempt = &tx.Attempted{Number: 1, At: at, NextAt: at.Add(time.Hour), Note: "taken"}
		}),
		announce(1, block(10)), announce(2, block(10)), reopen(2, tx.Open, at), seal(3, block(11)), watched(4), closed(5))
	q.apply(changes...)
	read := func() (rows []tx.Work) {
		rows, err := q.Find(soon(t), 1, []chain.Hash{hash(0), hash(1), hash(2), hash(3), hash(4)})
		check(t, err)
		slices.SortFunc(rows, byHash)
		return rows
	}
	before := read()
	q.apply(changes[:6]...)
	closedAgain := read()
	if diff := cmp.Diff(before, closedAgain); diff != "" {
		t.Error("rows opened twice:", diff)
	}
	q.apply(changes...)
	if diff := cmp.Diff(before, read()); diff != "" {
		t.Error("applied twice:", diff)
	}
	if rows, err := q.Find(soon(t), 1, []chain.Hash{hash(5)}); err != nil || len(rows) != 0 {
		t.Errorf("the closed row is %v, %v", rows, err)
	}
	// Changes to missing rows.
	q.apply(announce(77, block(1)), seal(77, block(1)), watched(77), closed(77), reopen(77, tx.Open, at),
		on(77, func(c *tx.Change) { c.Attempt = &tx.Attempted{Number: 1, At: at, NextAt: at} }))
	if rows, err := q.Find(soon(t), 1, []chain.Hash{hash(77)}); err != nil || len(rows) != 0 {
		t.Errorf("a row came of nothing: %v, %v", rows, err)
	}
}

func phases(t *testing.T, q *queue) {
	at := q.clock.Now().Add(-time.Second).UTC().Truncate(time.Microsecond)
	q.apply(opens(q.row(1, address(1), 0))...)
	step := func(c tx.Change, phase tx.Phase, verdict tx.Status, b chain.Block, leased bool) {
		t.Helper()
		q.apply(c)
		got := q.find(1)
		if got.Phase != phase || got.Verdict != verdict || got.Block != b {
			t.Fatalf("row is %s %q on %+v", got.Phase, got.Verdict, got.Block)
		}
		work := q.lease("a", time.Minute, 10)
		if (len(work) == 1) != leased {
			t.Fatalf("a row %s was leased: %v", phase, work)
		}
		if leased {
			check(t, q.Done(soon(t), "a", []tx.Done{{Chain: 1, Hash: hash(1), NextAt: at}}))
		}
	}
	stale := on(1, func(c *tx.Change) { c.Announce = &tx.Verdict{Status: tx.StatusStale, Block: block(12)} })
	step(announce(1, block(10)), tx.Announced, tx.StatusExecuted, block(10), false)
	step(stale, tx.Announced, tx.StatusStale, block(12), false)
	step(reopen(1, tx.Open, at), tx.Open, "", chain.Block{}, true)
	step(watched(1), tx.Watched, "", chain.Block{}, false)
	step(announce(1, block(11)), tx.Announced, tx.StatusExecuted, block(11), false)
	step(reopen(1, tx.Watched, at), tx.Watched, "", chain.Block{}, false)
	step(announce(1, block(11)), tx.Announced, tx.StatusExecuted, block(11), false)
	step(seal(1, block(11)), tx.Sealed, tx.StatusExecuted, block(11), false)
	q.apply(closed(1))
	if rows, err := q.Find(soon(t), 1, []chain.Hash{hash(1)}); err != nil || len(rows) != 0 {
		t.Fatalf("closed, the row is %v, %v", rows, err)
	}
	// A reopened row is due at the given time.
	q.apply(opens(q.row(1, address(1), 0))...)
	q.apply(announce(1, block(10)))
	later := at.Add(time.Hour)
	q.apply(reopen(1, tx.Open, later))
	if got := q.find(1); !got.NextAt.Equal(later) {
		t.Fatalf("reopened for %s, due %s", later, got.NextAt)
	}
	if work := q.lease("a", time.Minute, 10); len(work) != 0 {
		t.Fatal("reopened for later, leased now")
	}
}

func attempts(t *testing.T, q *queue) {
	at := q.clock.Now().Add(-time.Second).UTC().Truncate(time.Microsecond)
	recorded := func(number int, next time.Time) tx.Change {
		return on(1, func(c *tx.Change) {
			c.Attempt = &tx.Attempted{Number: number, At: at, NextAt: next, Note: fmt.Sprint("attempt ", number)}
		})
	}
	q.apply(opens(q.row(1, address(1), 0))...)
	q.apply(recorded(2, at.Add(time.Hour)))
	got := q.find(1)
	if got.Attempts != 2 || !got.NextAt.Equal(at.Add(time.Hour)) || !got.SentAt.Equal(at) || got.Note != "attempt 2" {
		t.Fatalf("after a recorded attempt: %+v", got)
	}
	q.apply(recorded(1, at)) // an older number, from a replay
	q.apply(recorded(2, at)) // the same number again: the worker has reported since
	if again := q.find(1); again.Attempts != 2 || !again.NextAt.Equal(got.NextAt) || again.Note != got.Note {
		t.Fatalf("an older attempt changed %+v to %+v", got, again)
	}
	q.apply(recorded(3, at))
	if again := q.find(1); again.Attempts != 3 || !again.NextAt.Equal(at) {
		t.Fatalf("after the next attempt: %+v", again)
	}
	if work := q.lease("a", time.Minute, 1); len(work) != 1 {
		t.Fatal("due by a recorded attempt, and not leased")
	}
	next := at.Add(2 * time.Hour)
	check(t, q.Done(soon(t), "a", []tx.Done{{Chain: 1, Hash: hash(1), Attempts: 5, SentAt: at, NextAt: next, Note: "five"}}))
	q.apply(recorded(4, at))
	if again := q.find(1); again.Attempts != 5 || !again.NextAt.Equal(next) || again.Note != "five" {
		t.Fatalf("the row's own count was ahead, and it became %+v", again)
	}
}

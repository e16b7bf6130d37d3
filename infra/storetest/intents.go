package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// IntentRows is the work queue of intents.
type IntentRows interface {
	Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []intent.Change) error
	Claim(ctx context.Context, c intent.Claim) ([]intent.Claimed, error)
	Return(ctx context.Context, holder string, ids []chain.IntentID) error
	Demand(ctx context.Context, id chain.ID) ([]intent.Demand, error)
	Open(ctx context.Context, client string, most int) (int, error)
	Ahead(ctx context.Context, row intent.Row, before eventlog.Position) (chain.IntentID, error)
}

// Intents is the contract of the work queue of intents.
func Intents(t *testing.T, open func(t *testing.T) Opened[IntentRows]) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, q *intentQueue)
	}{
		{"the oldest go first, to one claimant", intentOrder},
		{"a lane claims matching intents", intentFit},
		{"a claim lapses, or is given back", intentLapse},
		{"an intent with a nonce does not wait", intentPlaced},
		{"a row goes to one lane, in order", intentRowOrder},
		{"the intent before it in its ordering group", intentRowBehind},
		{"a row whose next one does not fit", intentRowUnfit},
		{"a row that lost its first place", intentRowRequeued},
		{"rows of others, and of other chains", intentRowsApart},
		{"repeated changes, and changes of unknown intents", intentTwice},
		{"the checkpoint", intentCheckpoint},
		{"a crowd of another client's keeps nobody waiting", intentCrowd},
		{"turns go on from claim to claim", intentTurns},
		{"turns keep the order in an ordering group", intentTurnsInOrder},
		{"demand", intentDemand},
		{"a client's open intents are counted", intentOpen},
		{"intents that wait before it in its ordering group", intentAhead},
		{"ceilings and sizes of intents", intentFees},
		{"an intent sleeps until its time", intentAsleep},
		{"an ordering group waits for the sleeper in it", intentAsleepInOrder},
		{"intents outlive the process", intentReopened},
		{"many lanes", intentLanes},
		{"against a model", intentModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := open(t)
			c.run(t, &intentQueue{t: t, IntentRows: o.Port, clock: o.Clock.orReal(), reopen: o.Reopen, reader: "relayer"})
		})
	}
}

// intentQueue is a queue under test, with its reader's checkpoint.
type intentQueue struct {
	IntentRows
	t      *testing.T
	clock  Clock
	reopen func() IntentRows
	reader string
	at     eventlog.Position
}

// The signers, and the pool of both.
var (
	signers    = []chain.Address{{19: 1}, {19: 2}}
	intentPool = "hot"
)

func intentID(n int) (id chain.IntentID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// intentOf is the n-th intent, for the pool unless with says otherwise.
func intentOf(n int, with ...func(*intent.Waiting)) intent.Waiting {
	w := intent.Waiting{ID: intentID(n), Position: eventlog.Position(n), Chain: 1, From: intent.From{Pool: intentPool}}
	for _, change := range with {
		change(&w)
	}
	return w
}

func bySigner(n int) func(*intent.Waiting) {
	return func(w *intent.Waiting) { w.From = intent.From{Signer: &signers[n]} }
}

func underKey(n byte) func(*intent.Waiting) {
	return func(w *intent.Waiting) { w.Key = &chain.NonceKey{31: n} }
}

func inRow(client, order string) func(*intent.Waiting) {
	return func(w *intent.Waiting) { w.Row = intent.Row{Chain: w.Chain, Client: client, Order: order} }
}

func ofClient(client string) func(*intent.Waiting) {
	return func(w *intent.Waiting) { w.Client = client }
}

func onChain(id chain.ID) func(*intent.Waiting) { return func(w *intent.Waiting) { w.Chain = id } }

func asks(all ...intent.Waiting) (changes []intent.Change) {
	for _, w := range all {
		changes = append(changes, intent.Change{ID: w.ID, Open: &w})
	}
	return changes
}

func places(n, signer int, key byte) intent.Change {
	return intent.Change{ID: intentID(n), Place: &intent.Place{Signer: signers[signer], NonceKey: chain.NonceKey{31: key}, Nonce: uint64(n)}}
}

func requeues(n int) intent.Change { return intent.Change{ID: intentID(n), Requeue: true} }
func closes(n int) intent.Change   { return intent.Change{ID: intentID(n), Close: true} }

func (q *intentQueue) apply(changes ...intent.Change) {
	q.t.Helper()
	check(q.t, q.Apply(soon(q.t), q.reader, q.at, q.at+1, changes))
	q.at++
}

// laneClaim is the claim of a signer's lane, for an hour.
func laneClaim(signer int, key byte, limit int) intent.Claim {
	return intent.Claim{
		Lane:  chain.Sequence{Chain: 1, Sender: signers[signer], Key: chain.NonceKey{31: key}},
		Pools: []string{intentPool, "other"}, Holder: fmt.Sprintf("holder of %d/%d", signer, key), TTL: time.Hour, Limit: limit,
	}
}

// claim claims, and expects these intents.
func (q *intentQueue) claim(c intent.Claim, want ...int) []intent.Claimed {
	q.t.Helper()
	claimed, err := q.Claim(soon(q.t), c)
	check(q.t, err)
	var got []int
	for _, w := range claimed {
		got = append(got, int(w.Position))
		if w.ID != intentID(int(w.Position)) {
			q.t.Errorf("%s stands at %d", w.ID, w.Position)
		}
	}
	if !slices.Equal(got, want) {
		q.t.Fatalf("%s claimed %v, not %v", c.Holder, got, want)
	}
	return claimed
}

// returns gives a claim's intents back.
func (q *intentQueue) returns(c intent.Claim, all ...int) {
	q.t.Helper()
	var ids []chain.IntentID
	for _, n := range all {
		ids = append(ids, intentID(n))
	}
	check(q.t, q.Return(soon(q.t), c.Holder, ids))
}

// behind expects these intents just before the claimed ones in their ordering groups; 0 means
// none.
func (q *intentQueue) behind(claimed []intent.Claimed, want ...int) {
	q.t.Helper()
	for i, c := range claimed {
		var id chain.IntentID
		if want[i] != 0 {
			id = intentID(want[i])
		}
		if c.Behind != id {
			q.t.Errorf("%d stands behind %s, not %d", c.Position, c.Behind, want[i])
		}
	}
}

func intentOrder(t *testing.T, q *intentQueue) {
	q.apply(asks(intentOf(1), intentOf(2, bySigner(0)), intentOf(3))...)
	q.apply(asks(intentOf(4, bySigner(0)), intentOf(5))...)
	q.claim(laneClaim(0, 0, 2), 1, 2)
	q.claim(laneClaim(1, 0, 1), 3)
	q.claim(laneClaim(0, 0, 10), 4, 5)
	q.claim(laneClaim(0, 0, 10))
	q.claim(laneClaim(1, 0, 10))
	whole := intentOf(6, bySigner(1), underKey(7), inRow("client", "order"), ofClient("client"), func(w *intent.Waiting) { w.Deadline = 253_402_300_799 })
	q.apply(asks(whole)...)
	if diff := cmp.Diff([]intent.Claimed{{Waiting: whole}}, q.claim(laneClaim(1, 7, 1), 6)); diff != "" {
		t.Error(diff)
	}
}

func intentFit(_ *testing.T, q *intentQueue) {
	other := func(w *intent.Waiting) { w.From = intent.From{Pool: "cold"} }
	q.apply(asks(
		intentOf(1, bySigner(0)), intentOf(2, bySigner(1)), intentOf(3), intentOf(4, other), intentOf(5, onChain(2)),
		intentOf(6, underKey(0)), intentOf(7, underKey(9)), intentOf(8, bySigner(1), underKey(9)),
		// A pool may have the name of an account.
		intentOf(9, func(w *intent.Waiting) { w.From.Pool = signers[0].String() }),
	)...)
	asked := laneClaim(1, 9, 1)
	asked.OnlyAsked = true // 2 and 3 leave the key to the relay, and came earlier
	q.claim(asked, 7)
	q.claim(laneClaim(1, 9, 10), 2, 3, 8)
	q.claim(laneClaim(0, 9, 10), 1)
	q.claim(laneClaim(0, 0, 10), 6)
	on2 := laneClaim(0, 0, 10)
	on2.Lane.Chain = 2
	q.claim(on2, 5)
	alone := laneClaim(0, 0, 10)
	alone.Pools = nil
	q.claim(alone)
	alone.Pools = []string{"cold", signers[0].String()}
	q.claim(alone, 4, 9)
}

func intentLapse(t *testing.T, q *intentQueue) {
	q.apply(asks(intentOf(1), intentOf(2), intentOf(3, inRow("c", "o")), intentOf(4, inRow("c", "o")))...)
	short := laneClaim(0, 0, 3)
	short.TTL = 50 * time.Millisecond
	q.claim(short, 1, 2, 3)
	q.clock.Elapse(2 * short.TTL)
	others := laneClaim(1, 0, 1)
	q.claim(others, 1)
	q.claim(laneClaim(1, 9, 10), 2, 3, 4)
	q.apply(closes(2), closes(3), closes(4), asks(intentOf(2))[0])
	check(t, q.Return(soon(t), others.Holder, []chain.IntentID{intentID(1)}))
	q.claim(laneClaim(1, 0, 10), 1, 2)
	check(t, q.Return(soon(t), short.Holder, []chain.IntentID{intentID(1), intentID(2), intentID(9)})) // no longer claimed by it
	q.claim(laneClaim(0, 0, 10))
	check(t, q.Return(soon(t), laneClaim(1, 0, 1).Holder, []chain.IntentID{intentID(2)}))
	check(t, q.Return(soon(t), laneClaim(1, 0, 1).Holder, nil))
	q.claim(laneClaim(0, 0, 10), 2)
}

func intentPlaced(t *testing.T, q *intentQueue) {
	q.apply(asks(intentOf(1), intentOf(2), intentOf(3))...)
	q.claim(laneClaim(0, 0, 1), 1)
	q.apply(places(1, 0, 0), places(2, 1, 0))
	check(t, q.Return(soon(t), laneClaim(0, 0, 1).Holder, []chain.IntentID{intentID(1)})) // it is not waiting
	q.claim(laneClaim(1, 0, 10), 3)
	q.apply(requeues(1))
	q.claim(laneClaim(1, 0, 10), 1)
	q.apply(requeues(1)) // it is claimed, and had lost its place before
	q.claim(laneClaim(0, 0, 10))
	q.apply(places(1, 0, 0), requeues(2), closes(1))
	q.claim(laneClaim(0, 0, 10), 2)
	q.apply(closes(2), closes(3))
	if d, err := q.Demand(soon(t), 1); err != nil || len(d) != 0 {
		t.Errorf("after all have come out: %+v, %v", d, err)
	}
}

func intentRowOrder(t *testing.T, q *intentQueue) {
	row := inRow("c", "o")
	q.apply(asks(intentOf(1, row), intentOf(2, row), intentOf(3), intentOf(4, row), intentOf(5, row))...)
	q.behind(q.claim(laneClaim(0, 0, 2), 1, 2), 0, 1)
	q.claim(laneClaim(1, 0, 10), 3) // the ordering group is in the other lane
	q.behind(q.claim(laneClaim(0, 0, 1), 4), 2)
	next := laneClaim(0, 0, 1) // the lane's next holder
	next.Holder = "next"
	q.claim(next)
	q.apply(places(1, 0, 0), places(2, 0, 0), places(4, 0, 0))
	q.claim(laneClaim(0, 9, 10)) // the signer's other lane
	q.behind(q.claim(next, 5), 4)
	check(t, q.Return(soon(t), "next", []chain.IntentID{intentID(5)}))
	q.apply(closes(1), closes(4))
	q.claim(laneClaim(1, 0, 10))
	q.apply(closes(2))
	q.behind(q.claim(laneClaim(1, 0, 10), 5), 0)
}

func intentRowBehind(_ *testing.T, q *intentQueue) {
	row, other := inRow("c", "o"), inRow("d", "o")
	q.apply(asks(
		intentOf(1, other), intentOf(2, row), intentOf(3, onChain(2), row), intentOf(4, row), intentOf(5, other), intentOf(6, row),
		intentOf(7), intentOf(8, row),
	)...)
	q.apply(places(2, 0, 0), places(4, 0, 0))
	q.behind(q.claim(laneClaim(0, 0, 10), 1, 5, 6, 7, 8), 0, 1, 4, 0, 6)
	q.returns(laneClaim(0, 0, 10), 6, 7, 8)
	q.apply(closes(4)) // before the intents ahead of it
	q.behind(q.claim(laneClaim(0, 0, 1), 6), 2)
	q.returns(laneClaim(0, 0, 1), 6)
	q.apply(places(6, 0, 0), requeues(2)) // it has lost its nonce, and the intents behind it have not
	q.behind(q.claim(laneClaim(0, 0, 10), 2, 7, 8), 0, 0, 6)
	q.returns(laneClaim(0, 0, 10), 2, 7, 8)
	q.apply(asks(intentOf(4, row))...) // its block has left the chain
	q.behind(q.claim(laneClaim(0, 0, 10), 2, 4, 7, 8), 0, 2, 0, 6)
	q.apply(closes(2), closes(4), closes(6), requeues(8))
	q.returns(laneClaim(0, 0, 10), 8)
	q.behind(q.claim(laneClaim(0, 0, 10), 8), 0)
}

func intentRowUnfit(_ *testing.T, q *intentQueue) {
	row := inRow("c", "o")
	q.apply(asks(intentOf(1, row), intentOf(2, row, bySigner(1)), intentOf(3, row), intentOf(4), intentOf(5, row, bySigner(0)))...)
	q.claim(laneClaim(0, 0, 10), 1, 4)
	q.claim(laneClaim(1, 0, 10))
	q.apply(places(1, 0, 0), closes(1))
	q.claim(laneClaim(0, 0, 10))
	q.claim(laneClaim(1, 0, 10), 2, 3)
	q.apply(places(2, 1, 0), places(3, 1, 0), closes(2))
	q.claim(laneClaim(0, 0, 10))
	q.apply(closes(3))
	q.claim(laneClaim(0, 0, 10), 5)
}

func intentRowRequeued(_ *testing.T, q *intentQueue) {
	row := inRow("c", "o")
	q.apply(asks(intentOf(1, row), intentOf(2, row), intentOf(3, row))...)
	q.claim(laneClaim(0, 0, 2), 1, 2)
	q.apply(places(1, 0, 0), places(2, 0, 0), requeues(1))
	q.claim(laneClaim(1, 0, 10))
	q.behind(q.claim(laneClaim(0, 0, 1), 1), 0)
	q.behind(q.claim(laneClaim(0, 0, 10), 3), 2)
}

func intentRowsApart(_ *testing.T, q *intentQueue) {
	q.apply(asks(
		intentOf(1, inRow("c", "o")), intentOf(2, inRow("d", "o")), intentOf(3, inRow("c", "p")),
		intentOf(4, onChain(2), inRow("c", "o")), intentOf(5, inRow("", "o")),
	)...)
	q.claim(laneClaim(0, 0, 1), 1)
	q.claim(laneClaim(1, 0, 10), 2, 3, 5)
	on2 := laneClaim(1, 0, 10)
	on2.Lane.Chain = 2
	q.claim(on2, 4)
}

func intentTwice(_ *testing.T, q *intentQueue) {
	row := inRow("c", "o")
	q.apply(places(1, 0, 0), requeues(1), closes(1))
	q.apply(places(1, 0, 0), asks(intentOf(1, row))[0], asks(intentOf(2, row))[0])
	q.claim(laneClaim(1, 0, 1), 1) // it had no ordering group when it got a nonce
	q.apply(asks(intentOf(1), intentOf(2))...)
	q.claim(laneClaim(0, 0, 10)) // they are in their ordering group
	q.apply(places(1, 1, 0), places(1, 1, 0))
	q.apply(requeues(1), requeues(1))
	q.claim(laneClaim(0, 0, 10), 1, 2)
	q.apply(closes(1), closes(1), asks(intentOf(1, row))[0], places(1, 0, 0))
	q.claim(laneClaim(0, 0, 10))
	q.apply(requeues(1))
	q.claim(laneClaim(0, 0, 10), 1)
	q.apply(closes(1), closes(2), asks(intentOf(3, row))[0], closes(3), asks(intentOf(4, row))[0])
	q.claim(laneClaim(1, 0, 10), 4)
	// An intent reopened by a reorg has its earlier place, before the others.
	q.apply(closes(4))
	q.apply(asks(intentOf(6, row), intentOf(5, row))...)
	q.claim(laneClaim(0, 0, 1), 5)
}

func intentCheckpoint(t *testing.T, q *intentQueue) {
	q.apply(asks(intentOf(1))...)
	for _, from := range []eventlog.Position{0, 2} {
		if err := q.Apply(soon(t), q.reader, from, 9, asks(intentOf(2))); !errors.Is(err, eventlog.ErrMoved) {
			t.Errorf("applied from %d: %v", from, err)
		}
	}
	q.apply()
	q.claim(laneClaim(0, 0, 10), 1)
}

func intentReopened(t *testing.T, q *intentQueue) {
	row := inRow("c", "o")
	q.apply(asks(intentOf(1, row), intentOf(2, row), intentOf(3))...)
	q.claim(laneClaim(0, 0, 1), 1)
	q.IntentRows = q.reopen()
	q.claim(laneClaim(1, 0, 10), 3)
	q.claim(laneClaim(0, 0, 10), 2)
	if err := q.Apply(soon(t), q.reader, 0, 9, nil); !errors.Is(err, eventlog.ErrMoved) {
		t.Errorf("the checkpoint is forgotten: %v", err)
	}
}

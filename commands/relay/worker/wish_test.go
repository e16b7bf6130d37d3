package worker

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// A cancel at any moment: an unsigned intent returns its nonce, a signed one is raced by a
// no-op, and one that is mined first completes.
func TestCancel(t *testing.T) {
	cancel := func(w *world, id chain.IntentID) {
		w.wish(id, intent.Cancel{Detail: "changed my mind", At: w.clock.now()})
	}
	for _, c := range []struct {
		name   string
		when   func(w *world, a *actor, id chain.IntentID)
		want   intent.Status
		noops  int
		landed uint64 // nonces used in the end, of the two intents
	}{
		{"while it waits", func(w *world, _ *actor, id chain.IntentID) { cancel(w, id) }, intent.StatusCanceled, 0, 1},
		{"before it is signed", func(w *world, a *actor, id chain.IntentID) {
			for _, step := range []func(context.Context) error{a.poll, a.look, a.take, a.place} {
				must(w.t, step(w.t.Context()))
			}
			cancel(w, id)
		}, intent.StatusCanceled, 0, 2}, // a no-op without an intent uses the nonce
		{"after it is signed", func(w *world, a *actor, id chain.IntentID) {
			w.hold = true
			must(w.t, w.turns(a, 1))
			cancel(w, id)
			must(w.t, w.turns(a, 1))
			w.hold = false
		}, intent.StatusCanceled, 1, 2},
		{"after it is mined", func(w *world, a *actor, id chain.IntentID) {
			must(w.t, w.turns(a, 1))
			w.block()
			cancel(w, id)
		}, intent.StatusCompleted, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker()
			ids := w.ask(w.request(1), w.request(2))
			c.when(w, a, ids[0])
			w.until(a, "the other is done", w.ended(intent.StatusCompleted, ids[1]))
			s := w.intent(ids[0])
			noops := 0
			for _, made := range s.Attempts {
				if made.Kind == intent.NoOp {
					noops++
				}
			}
			if s.Status() != c.want || noops != c.noops || w.chain.Nonce(w.lane) != c.landed {
				t.Errorf("%s with %d no-ops, %d nonces used", s.Status(), noops, w.chain.Nonce(w.lane))
			}
			w.judge()
		})
	}
}

// A cancel arrives when the lane has an attempt that was not handed over: it is never
// handed over.
func TestCancelBetween(t *testing.T) {
	w := newWorld(t)
	ids := w.ask(w.request(1), w.request(2))
	l, ln := w.live(0, false)
	l.point = "lane.attempted"
	if !w.doomed(l, ln, func() bool { return false }) {
		t.Fatal("it did not die")
	}
	w.wish(ids[0], intent.Cancel{At: w.clock.now()})
	orphan := w.attempted()[0]
	w.until(w.worker(), "the other is done", w.ended(intent.StatusCompleted, ids[1]))
	if s := w.intent(ids[0]); s.Status() != intent.StatusCanceled || len(s.Attempts) != 2 || s.Attempts[1].Kind != intent.NoOp {
		t.Errorf("%s with %+v", s.Status(), s.Attempts)
	}
	if slices.ContainsFunc(w.accepted(), func(s tx.State) bool { return s.Accepted.Hash == orphan }) {
		t.Error("delivery has what was not to be handed over any more")
	}
	w.judge()
}

// A holder that was paused and continues after another has opened the lane appends nothing,
// and stops.
func TestFenced(t *testing.T) {
	w := newWorld(t)
	old := w.worker()
	ids := w.ask(w.request(1), w.request(2))
	must(t, w.turns(old, 1))
	young := w.worker()
	more := w.ask(w.request(3))
	w.block()
	before := w.appends["lane"]
	if err := w.turns(old, 1); !errors.Is(err, lane.ErrFenced) || !errors.As(err, new(overError)) {
		t.Errorf("the old holder's turn: %v", err)
	}
	if n := w.appends["lane"]; n != before {
		t.Errorf("the old holder has appended %d times", n-before)
	}
	w.clock.pass(w.settings.Claim) // the old holder may have claimed
	w.until(young, "the young one goes on", w.ended(intent.StatusCompleted, append(ids, more...)...))
	w.judge()
}

// Two processes that both believe they hold the lane take turns: each opens it again when
// it is fenced.
func TestTwoHolders(t *testing.T) {
	w := newWorld(t)
	var requests []intent.Request
	for n := range 40 {
		requests = append(requests, w.request(n))
	}
	ids := w.ask(requests...)
	w.settings.Budget = 7
	actors := []*actor{w.worker(), w.worker()}
	done := w.ended(intent.StatusCompleted, ids...)
	for n := 0; !done(); n++ {
		if n > 300 {
			t.Fatal("in vain")
		}
		a := &actors[n%2]
		switch err := w.turns(*a, 1+n%3); {
		case errors.As(err, new(overError)):
			*a = w.worker()
			must(t, w.turns(*a, 1+n%2))
		case err != nil:
			t.Fatal(err)
		}
		if n%3 == 0 {
			w.block()
		}
		if n%7 == 0 {
			w.clock.pass(w.settings.Claim)
		}
	}
	w.judge()
}

// While nothing may be signed, nothing is; signed attempts are delivered.
func TestSwitchedOff(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	first := w.ask(w.request(1))
	must(t, w.turns(a, 1))
	w.may = errOff
	second := w.ask(w.request(2))
	for range 3 {
		w.clock.pass(w.settings.Stall)
		w.block()
		must(t, w.turns(a, 1))
	}
	if s := w.intent(first[0]); s.Status() != intent.StatusCompleted {
		t.Errorf("the first is %s", s.Status())
	}
	if s := w.intent(second[0]); s.Status() != intent.StatusWaiting {
		t.Errorf("the second is %s", s.Status())
	}
	w.may = nil
	w.until(a, "it goes on", w.ended(intent.StatusCompleted, second...))
	w.judge()
}

// A speed-up makes the lane sign a new attempt at once.
func TestSpeedUp(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.chain.SetBaseFee(1500)
	id := w.ask(w.request(1))[0]
	must(t, w.turns(a, 1))
	w.wish(id, intent.SpeedUp{Fee: intent.NewAmount(1700), At: w.clock.now()})
	w.until(a, "it is done", w.ended(intent.StatusCompleted, id))
	if s := w.intent(id); len(s.Attempts) != 2 || s.Attempts[1].Kind != intent.Bump {
		t.Errorf("attempts: %+v", s.Attempts)
	}
	w.judge()
}

// An intent whose deadline has passed is no longer signed.
func TestDeadline(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	soon := func(r *intent.Request) { r.Deadline = uint64(w.clock.now().Unix()) + 3 }
	w.hold = true
	ids := w.ask(w.request(1, soon), w.request(2))
	must(t, w.turns(a, 1))
	late := w.ask(w.request(3, soon))
	for range 4 {
		w.block()
	}
	must(t, w.turns(a, 1))
	w.hold = false
	w.until(a, "the one without is done", w.ended(intent.StatusCompleted, ids[1]))
	for _, id := range []chain.IntentID{ids[0], late[0]} {
		if s := w.intent(id); s.Status() != intent.StatusFailed || s.End.Reason != intent.Deadline {
			t.Errorf("%s, %+v", s.Status(), s.End)
		}
	}
	if s := w.intent(late[0]); len(s.Attempts) != 0 {
		t.Errorf("%d attempts after the deadline", len(s.Attempts))
	}
	w.judge()
}

// An intent that would revert gets no nonce; an intent that no node can simulate waits.
func TestSimulated(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	tried := func(r *intent.Request) { r.Simulate = true }
	bad, unclear := w.request(1, tried), w.request(2, tried)
	w.reverts[bad.ID()] = ErrReverts.Because("not enough")
	w.reverts[unclear.ID()] = errors.New("no endpoint answers")
	ids := w.ask(bad, unclear, w.request(3))
	if err := w.turns(a, 1); err == nil {
		t.Error("that a node cannot be asked is no trouble")
	}
	w.feed()
	if s := w.intent(ids[0]); s.Status() != intent.StatusFailed || s.End.Reason != intent.Simulation || s.Assignment != 0 {
		t.Errorf("%s, %+v", s.Status(), s.End)
	}
	if s := w.intent(ids[1]); s.Status() != intent.StatusWaiting {
		t.Errorf("what is unclear is %s", s.Status())
	}
	delete(w.reverts, unclear.ID())
	w.until(a, "the others are done", w.ended(intent.StatusCompleted, ids[1:]...))
	w.judge()
}

// An intent that the chain's transactions cannot express ends.
func TestUnsayable(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	ids := w.ask(w.request(1, func(r *intent.Request) { r.Gas.Sponsored = true }), w.request(2))
	w.until(a, "the other is done", w.ended(intent.StatusCompleted, ids[1]))
	if s := w.intent(ids[0]); s.Status() != intent.StatusFailed || s.End.Reason != intent.Refused || len(s.Attempts) != 0 {
		t.Errorf("%s, %+v", s.Status(), s.End)
	}
	w.judge()
}

// An ordering group is mined in order although lower nonces are free again: others or
// no-ops use these.
func TestRowStaysInOrder(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	ids := w.ask(w.request(1), w.request(2, inRow), w.request(3, inRow))
	for _, step := range []func(context.Context) error{a.poll, a.look, a.take, a.place} {
		must(t, step(t.Context()))
	}
	w.wish(ids[0], intent.Cancel{At: w.clock.now()}) // nonce 0 is free, and the group is above it
	w.feed()
	must(t, w.turns(a, 1))
	more := w.ask(w.request(4, inRow))
	must(t, w.turns(a, 2))
	w.hold = false
	row := append(ids[1:], more...)
	w.until(a, "the row is done", w.ended(intent.StatusCompleted, row...))
	w.rising(row...)
	w.judge()
}

// Any later holder of the lane takes attempts over, however old their bytes are.
func TestTakesOver(t *testing.T) {
	w := newWorld(t)
	l, ln := w.live(0, false)
	l.point = "intents.told"
	ids := w.ask(w.request(1), w.request(2))
	if !w.doomed(l, ln, func() bool { return false }) {
		t.Fatal("it did not die")
	}
	if n := len(w.accepted()); n != 0 {
		t.Fatalf("delivery has %d", n)
	}
	w.clock.pass(time.Hour)
	before := w.attempted()
	a := w.worker()
	must(t, w.turns(a, 1))
	var handed []chain.Hash
	for _, s := range w.accepted() {
		handed = append(handed, s.Accepted.Hash)
	}
	byHash := func(a, b chain.Hash) int { return bytes.Compare(a[:], b[:]) }
	slices.SortFunc(handed, byHash)
	slices.SortFunc(before, byHash)
	if !slices.Equal(handed, before) {
		t.Errorf("handed over %s, signed for were %s", handed, before)
	}
	w.until(a, "both are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

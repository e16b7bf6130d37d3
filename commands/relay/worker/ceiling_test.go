package worker

import (
	"slices"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// newDear returns a world in which intents are offered for at the ceiling, though gas costs
// less.
func newDear(t *testing.T) *world {
	w := newWorld(t)
	w.policy.Ceiling, w.policy.Normal.Headroom = chain.PriceOf(1000), 100
	w.fee = asking(600, 100)
	return w
}

// dies runs a process until it dies at a crash point.
func (w *world) dies(point string) {
	w.t.Helper()
	l, ln := w.live(0, false)
	if l.point = point; !w.doomed(l, ln, func() bool { return false }) {
		w.t.Fatal("it has outlived")
	}
}

// goes runs a worker until done, and ignores errors about lost bytes.
func (w *world) goes(done func() bool) {
	w.t.Helper()
	a := w.worker()
	var last error
	for range 60 {
		if last = w.turns(a, 1); done() {
			return
		}
		w.block()
	}
	w.t.Fatalf("in vain: %v", last)
}

// made returns the attempts at a nonce.
func (w *world) made(nonce uint64) []lane.Made {
	slot, _ := w.state().Slot(nonce)
	return slot.Attempts
}

// An intent is canceled after it was signed at the ceiling and its bytes were lost. A no-op
// replaces it within the ceiling, and later intents complete.
func TestCanceledAtTheCeiling(t *testing.T) {
	w := newDear(t)
	ids := w.ask(w.request(1), w.request(2))
	w.dies("lane.attempted")
	orphan := w.made(0)[0]
	if orphan.Fee.MaxFee != w.policy.Most().MaxFee {
		t.Fatalf("it was signed for at %s, not at %s", orphan.Fee.MaxFee, w.policy.Most().MaxFee)
	}
	w.wish(ids[0], intent.Cancel{At: w.clock.now()})
	w.until(w.worker(), "the other is done", w.ended(intent.StatusCompleted, ids[1]))
	s := w.intent(ids[0])
	if s.Status() != intent.StatusCanceled || len(s.Attempts) != 2 || s.Attempts[1].Kind != intent.NoOp || !s.Attempts[1].Fee.Replaces(orphan.Fee) {
		t.Errorf("%s with %+v", s.Status(), s.Attempts)
	}
	if slices.ContainsFunc(w.accepted(), func(s tx.State) bool { return s.Accepted.Hash == orphan.Hash }) {
		t.Error("delivery has what was not to be handed over any more")
	}
	w.judge()
}

// The same happens if the operator has lowered the ceiling since: no pool has the withheld
// attempt, so the no-op need not outbid it.
func TestCanceledAboveTheCeiling(t *testing.T) {
	w := newDear(t)
	ids := w.ask(w.request(1), w.request(2))
	w.dies("lane.attempted")
	w.wish(ids[0], intent.Cancel{At: w.clock.now()})
	w.policy.Ceiling = chain.PriceOf(900)
	w.until(w.worker(), "the other is done", w.ended(intent.StatusCompleted, ids[1]))
	s := w.intent(ids[0])
	if s.Status() != intent.StatusCanceled || len(s.Attempts) != 2 || s.Attempts[1].Fee.MaxFee != w.policy.Ceiling {
		t.Errorf("%s with %+v", s.Status(), s.Attempts)
	}
	w.judge()
}

// An attempt that pools may have is outbid by its replacement, or not replaced.
func TestSentIsOutbid(t *testing.T) {
	w := newDear(t)
	a := w.worker()
	ids := w.ask(w.request(1), w.request(2))
	w.hold = true
	must(t, w.turns(a, 1))
	w.policy.Ceiling = chain.PriceOf(900)
	w.wish(ids[0], intent.Cancel{At: w.clock.now()})
	for range 3 {
		_ = w.turns(a, 1) // it returns an error: there is no room
	}
	if n := len(w.made(0)); n != 1 {
		t.Errorf("%d attempts", n)
	}
	w.hold = false
	w.goes(w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

// The bytes of attempts at the ceiling, the operator's or the intent's own, are lost before
// the hand-over. The new attempts offer no more, and may be the same again.
func TestLostBytesAtTheCeiling(t *testing.T) {
	for _, c := range []struct {
		name   string
		tip    uint64 // at most
		signed int    // for those two
	}{
		{"the same bytes", 110, 1},
		{"others", 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newDear(t)
			w.policy.TipCeiling = chain.PriceOf(c.tip)
			own := func(r *intent.Request) { r.Gas.MaxFee = intent.NewAmount(700) }
			ids := w.ask(w.request(1), w.request(2, own), w.request(3))
			w.dies("intents.told")
			lost := w.attempted()[:2]
			must(t, w.db.Payloads().Erase(t.Context(), moderato, lost[:1]))
			w.reseal(lost[1])
			w.goes(w.ended(intent.StatusCompleted, ids...))
			for _, id := range ids[:2] {
				for i, made := range w.intent(id).Attempts {
					if i >= c.signed || made.Fee.MaxFee.Int().Gt(w.policy.Most().MaxFee.Int()) {
						t.Errorf("%s has %+v", id, made)
					}
				}
			}
			if got := w.intent(ids[1]).Attempts[0].Fee.MaxFee; got != chain.PriceOf(700) {
				t.Errorf("the second was signed for at %s", got)
			}
			w.judge()
		})
	}
}

// The bytes of a no-op at the ceiling are lost before the hand-over: another no-op follows,
// or the same again.
func TestLostNoOpAtTheCeiling(t *testing.T) {
	for _, tip := range []uint64{110, 0} {
		w := newDear(t)
		w.policy.TipCeiling = chain.PriceOf(tip)
		ids := w.ask(w.request(1), w.request(2))
		w.dies("lane.attempted")
		w.wish(ids[0], intent.Cancel{At: w.clock.now()})
		w.dies("intents.told")
		made := w.made(0)
		noop := made[len(made)-1]
		if len(made) != 2 || !noop.Intent.IsZero() || !noop.Fee.MaxFee.Int().Gt(w.policy.Most().MaxFee.Int()) {
			t.Fatalf("%+v", made)
		}
		must(t, w.db.Payloads().Erase(t.Context(), moderato, []chain.Hash{noop.Hash}))
		w.goes(w.ended(intent.StatusCompleted, ids[1]))
		if s := w.intent(ids[0]); s.Status() != intent.StatusCanceled {
			t.Errorf("it is %s", s.Status())
		}
		w.judge()
	}
}

package worker

import (
	"crypto/rand"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func (w *world) mender() Mender {
	return Mender{
		Lanes: Lanes{Store: w.db.Log(), Codec: lane.Codec(), Random: rand.Reader}, Intents: Intents{Store: w.db.Log(), Codec: intent.Codec(), Random: rand.Reader},
		Now: w.clock.now,
	}
}

// blocked returns a lane whose first nonce is held by an intent of an ordering group with
// unknown price, and whose second nonce is signed.
func (w *world) blocked(a *actor, behind func(*intent.Request)) (ids []chain.IntentID) {
	w.t.Helper()
	slow := func(r *intent.Request) { r.Gas.Urgency = intent.Urgency(fee.Slow) }
	ids = w.ask(w.request(1, inRow, slow), w.request(2, behind))
	for _, step := range []func() error{
		func() error { return a.poll(w.t.Context()) }, func() error { return a.look(w.t.Context()) },
		func() error { a.claim = true; return a.take(w.t.Context()) },
	} {
		must(w.t, step())
	}
	w.unpriced = fee.Slow
	w.dear(a, 4)
	if holes := w.state().Holes(); len(holes) != 1 || holes[0].Intent != ids[0] {
		w.t.Fatalf("holes: %+v", holes)
	}
	return ids
}

// dear runs turns while the price of gas is unknown.
func (w *world) dear(a *actor, n int) {
	w.t.Helper()
	for range n {
		if err := w.turns(a, 1); err != nil && !errors.Is(err, errUnpriced) {
			w.t.Fatal(err)
		}
		w.feed()
	}
}

// An operator fills a hole that an intent holds. The intent returns the nonce, a no-op uses
// it, higher nonces are mined, and the intent is executed later. Repeating the command, or
// naming a nonce that is no hole, has no effect.
func TestFills(t *testing.T) {
	for name, hears := range map[string]bool{"reads everything": false, "hears of it": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hears, w.hole = hears, 0
			a := w.worker()
			ids := w.blocked(a, func(*intent.Request) {})
			at := w.state().Holes()[0].Nonce
			meta := eventlog.Meta{Actor: "operator"}
			for nonce, want := range map[uint64]eventlog.Refusal{at + 1: lane.ErrNoHole, at + 9: lane.ErrNoHole} {
				if _, err := w.mender().Fill(t.Context(), w.lane, []uint64{at, nonce}, "no", meta); !errors.Is(err, want) {
					t.Errorf("nonce %d: %v", nonce, err)
				}
			}
			if _, err := w.mender().Fill(t.Context(), chain.Sequence{Chain: 1, Sender: w.lane.Sender}, []uint64{0}, "no", meta); !errors.Is(err, lane.ErrUnknown) {
				t.Errorf("a lane that is none: %v", err)
			}
			w.dear(a, 2)
			if holes := w.state().Holes(); len(holes) != 1 {
				t.Fatalf("what was refused has had an effect: %+v", holes)
			}
			for range 2 {
				given, err := w.mender().Fill(t.Context(), w.lane, []uint64{at}, "it blocks", meta)
				must(t, err)
				if diff := cmp.Diff([]Given{{at, ids[0]}}, given); diff != "" {
					t.Error(diff)
				}
			}
			for i := 0; w.intent(ids[1]).Status() != intent.StatusCompleted; i++ {
				if i == 50 {
					t.Fatalf("what is above it is %s", w.intent(ids[1]).Status())
				}
				w.dear(a, 1)
				w.send()
				w.block()
				w.watch()
			}
			if s := w.intent(ids[0]); s.Status() != intent.StatusWaiting || len(s.Attempts) > 0 || s.Yields() {
				t.Errorf("the intent is %s: %+v", s.Status(), s)
			}
			w.unpriced = ""
			w.clock.pass(w.settings.Claim)
			w.until(a, "the intent is carried out", w.ended(intent.StatusCompleted, ids...))
			w.judge()
		})
	}
}

// A fill that would change the order of an ordering group is refused. If the conflict
// arises after the command, the command has no effect.
func TestFillsNoRow(t *testing.T) {
	w := newWorld(t)
	w.hole = 0
	a := w.worker()
	ids := w.blocked(a, inRow)
	at := w.state().Holes()[0].Nonce
	if _, err := w.mender().Fill(t.Context(), w.lane, []uint64{at}, "it blocks", eventlog.Meta{}); !errors.Is(err, intent.ErrLive) {
		t.Errorf("the row is to land in another order: %v", err)
	}
	w.wish(ids[0], intent.Yield{Assignment: 1, At: w.clock.now()})
	w.dear(a, 4)
	if slot, _ := w.state().Slot(at); slot.Intent != ids[0] || slot.Filled {
		t.Errorf("the nonce was taken from it: %+v", slot)
	}
	w.unpriced = ""
	w.until(a, "both are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

package worker

import (
	"context"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// lossy is a queue that loses its next answers.
type lossy struct {
	Queue
	claims, returns int
}

func (q *lossy) Claim(ctx context.Context, c intent.Claim) ([]intent.Claimed, error) {
	claimed, err := q.Queue.Claim(ctx, c)
	if q.claims > 0 && len(claimed) > 0 {
		q.claims--
		return nil, eventlog.ErrUnknown
	}
	return claimed, err
}

func (q *lossy) Return(ctx context.Context, holder string, ids []chain.IntentID) error {
	if q.returns > 0 {
		q.returns--
		return eventlog.ErrUnknown
	}
	return q.Queue.Return(ctx, holder, ids)
}

// Intents in a claimed set that a holder discarded keep the rest of their ordering group
// waiting, also if the same process continues with the lane.
func TestRowsAfterLostClaims(t *testing.T) {
	for name, lose := range map[string]func(w *world, q *lossy) *actor{
		"the lane is given up before nonces are reserved": func(w *world, q *lossy) *actor {
			first, ln := w.live(0, false)
			a, err := w.opened(ln)
			must(t, err)
			must(t, w.turns(a, 1)) // it learns where the lane begins
			w.ask(w.request(1, inRow))
			first.crash(first.point)
			if err := w.turns(a, 1); err == nil {
				t.Fatal("it has reserved a nonce")
			}
			_, again := w.live(0, false)
			again.Holder = ln.Holder
			a, err = w.opened(again)
			must(t, err)
			return a
		},
		"the answer to a claim": func(w *world, q *lossy) *actor {
			a := w.worker()
			q.Queue, q.claims, a.Queue = a.Queue, 1, q
			w.ask(w.request(1, inRow))
			if err := w.turns(a, 1); err == nil {
				t.Fatal("it has heard of its claim")
			}
			return a
		},
		"what was to be given back": func(w *world, q *lossy) *actor {
			a := w.worker()
			q.Queue, q.returns, a.Queue = a.Queue, 1, q
			ids := w.ask(w.request(1, inRow))
			w.reverts[ids[0]] = errAway
			if err := w.turns(a, 1); err == nil {
				t.Fatal("it was given back")
			}
			delete(w.reverts, ids[0])
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := lose(w, &lossy{})
			earlier := w.request(1, inRow).ID()
			later := w.ask(w.request(2, inRow))[0]
			w.until(a, "both are done", w.ended(intent.StatusCompleted, earlier, later))
			w.rising(earlier, later)
			w.judge()
		})
	}
}

// An intent gets a nonce in another lane, and its claim lapses before the queue knows. Its
// ordering group waits, because the intents behind it have to follow it there.
func TestRowWhoseHeadIsElsewhere(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	ids := w.ask(w.request(1, inRow), w.request(2, inRow), w.request(3))
	there := intent.Place{Signer: chain.Address{0x77}, Nonce: 5}
	w.wish(ids[0], intent.Assign{Assignment: 1, Place: there, Token: 1, At: w.clock.now()})
	idle := func() {
		t.Helper()
		must(t, w.turns(a, 3))
		for _, id := range ids[:2] {
			if _, holds := a.held.State.Held(id); holds {
				t.Errorf("%s has got a nonce here", id)
			}
		}
	}
	idle()
	w.until(a, "what is in no row is done", w.ended(intent.StatusCompleted, ids[2]))
	later := w.ask(w.request(4, inRow)) // and the queue learns of the place
	ids = []chain.IntentID{ids[1], later[0]}
	idle()
}

// stormsShort is the number of histories per test run.
const stormsShort = 12

package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// pair returns two lanes of one process, of two signers of one pool. Their transactions do
// not reach the chain.
func pair(t *testing.T) (w *world, first, second *actor) {
	t.Helper()
	w = newWorld(t)
	w.hold = true
	signers, err := keys.Environment([]string{"RELAYER_PRIVATE_KEY_0=59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"}, true, slog.New(slog.DiscardHandler))
	must(t, err)
	must(t, w.operator().Register(t.Context(), moderato, signers[0].Address(), []string{"hot"}))
	_, l := w.live(0, false)
	first, err = w.opened(l)
	must(t, err)
	second, err = w.opened(&Lane{
		Relayer: l.Relayer, ID: chain.Sequence{Chain: moderato, Sender: signers[0].Address(), Key: w.lane.Key}, Signer: signers[0], Pools: l.Pools,
	})
	must(t, err)
	must(t, w.turns(first, 1))
	must(t, w.turns(second, 1))
	return w, first, second
}

// some returns requests for the pool, or for one signer.
func (w *world) some(from, n int, signer *chain.Address) (requests []intent.Request) {
	for i := range n {
		requests = append(requests, w.request(from+i, func(r *intent.Request) {
			if signer != nil {
				r.From = intent.From{Signer: signer}
			}
		}))
	}
	return requests
}

// The less loaded lane takes more of its pool's intents. Afterwards both have the same
// load, whichever looks first.
func TestShares(t *testing.T) {
	for name, firstLooks := range map[string]bool{"the busy one looks first": true, "the idle one looks first": false} {
		t.Run(name, func(t *testing.T) {
			w, first, second := pair(t)
			w.ask(w.some(0, 6, &w.lane.Sender)...)
			must(t, w.turns(first, 1))
			w.ask(w.some(100, 12, nil)...)
			if firstLooks {
				must(t, w.turns(first, 1))
			}
			must(t, w.turns(second, 1))
			must(t, w.turns(first, 1))
			if a, b := first.held.State.InFlight(), second.held.State.InFlight(); a != 9 || b != 9 {
				t.Errorf("they have %d and %d", a, b)
			}
		})
	}
}

// A lane takes intents that it left to others and that they did not take. Intents for its
// own signer it takes at once.
func TestSharesNobodyTakes(t *testing.T) {
	w, first, _ := pair(t)
	w.ask(w.some(0, 6, &w.lane.Sender)...)
	must(t, w.turns(first, 1))
	w.ask(append(w.some(100, 4, nil), w.some(200, 1, &w.lane.Sender)...)...)
	must(t, w.turns(first, 1))
	if n := first.held.State.InFlight(); n != 7 {
		t.Errorf("the busy lane has %d", n)
	}
	for range 2 {
		w.clock.pass(w.settings.Poll)
		must(t, w.turns(first, 1))
	}
	if n := first.held.State.InFlight(); n != 11 {
		t.Errorf("the busy lane has %d, and nobody else takes the rest", n)
	}
}

// An ordering group is not split between lanes, whichever has less to do.
func TestSharesKeepRows(t *testing.T) {
	w, first, second := pair(t)
	w.ask(w.some(0, 2, &w.lane.Sender)...)
	must(t, w.turns(first, 1))
	row := w.some(100, 8, nil)
	for i := range row {
		row[i].Order = "row"
	}
	w.ask(row[:4]...)
	must(t, w.turns(second, 1))
	w.ask(row[4:]...)
	must(t, w.turns(first, 1))
	must(t, w.turns(second, 1))
	if a, b := first.held.State.InFlight(), second.held.State.InFlight(); a != 2 || b != 8 {
		t.Errorf("they have %d and %d", a, b)
	}
}

// A claim may exceed the lane's room if the first intents are blocked. The rest goes to the
// lanes that may execute it.
func TestSharesOfMoreThanRoom(t *testing.T) {
	w, first, second := pair(t)
	first.Settings.Budget = 2
	stuck := w.some(0, 3, &w.lane.Sender)
	for _, r := range stuck[:2] {
		w.reverts[r.ID()] = errAway
	}
	ids := w.ask(append(stuck, w.some(100, 2, nil)...)...)
	for range 6 {
		for _, a := range []*actor{first, second} {
			if err := w.turns(a, 1); err != nil && !errors.Is(err, errAway) {
				t.Fatal(err)
			}
		}
	}
	for i, id := range ids[2:] {
		if w.intent(id).Place == nil {
			t.Errorf("%d waits", i)
		}
	}
}

// unclearFor are nodes that cannot estimate gas for a sender that lacks the value of its
// calls.
type unclearFor struct {
	*world
	poor chain.Address
}

func (u unclearFor) Gas(ctx context.Context, s chain.Sequence, r intent.Request) (uint64, error) {
	if s.Sender == u.poor {
		return 0, errors.New("insufficient funds for transfer")
	}
	return u.world.Gas(ctx, s, r)
}

// spentFor is a guard that has no budget left for one signer.
type spentFor struct {
	Guard
	poor chain.Address
}

func (g spentFor) Allow(ctx context.Context, id chain.Sequence, token lane.Token, requests []*intent.Request, charges []budget.Charge) ([]error, error) {
	answers, err := g.Guard.Allow(ctx, id, token, requests, charges)
	if id.Sender == g.poor {
		for i := range answers {
			answers[i] = budget.ErrSpent
		}
	}
	return answers, err
}

// The least loaded lane of a pool cannot execute the pool's intents: the other lane does,
// whichever looks first each time.
func TestSharesOfWhoCannot(t *testing.T) {
	for name, c := range map[string]struct{ spent, poorFirst bool }{
		"who lacks the value looks first":  {false, true},
		"who has it looks first":           {false, false},
		"who lacks the budget looks first": {true, true},
		"who has that looks first":         {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, able, poor := pair(t)
			r := *able.Relayer
			if c.spent {
				r.Guard = spentFor{r.Guard, poor.ID.Sender}
			} else {
				r.Node = unclearFor{w, poor.ID.Sender}
			}
			able.Relayer, poor.Relayer = &r, &r
			w.ask(w.some(0, 6, &able.ID.Sender)...)
			must(t, w.turns(able, 1))
			ids := w.ask(append(w.some(100, 10, nil), w.request(200, inRow), w.request(201, inRow))...)
			order := []*actor{able, poor}
			if c.poorFirst {
				slices.Reverse(order)
			}
			for range 60 {
				for _, a := range order {
					for _, at := range []*actor{a, able, poor} {
						if at == a || at.box.claim { // it is due, or it was woken
							_ = w.turns(at, 1) // the poor one returns the blocked intents' errors
						}
					}
					w.clock.pass(w.settings.Poll / 2)
				}
				w.feed()
			}
			for i, id := range ids {
				if w.intent(id).Place == nil {
					t.Errorf("%d waits", i)
				}
			}
		})
	}
}

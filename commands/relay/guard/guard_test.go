package guard_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Replicas that reserve concurrently never reserve more together than the limit, and
// reserve all of it.
func TestReplicasReserve(t *testing.T) {
	w := newWorld(t)
	const replicas, each, room = 4, 100, 150
	first := w.replica()
	w.limit(first, budget.Account{Kind: budget.OnChain}, room)
	var running sync.WaitGroup
	granted := make([]int, replicas)
	for n := range replicas {
		g, a := w.replica(), chain.Address{byte(n + 1)}
		w.register(g, a)
		running.Go(func() {
			for i := range each {
				r := request(n*each + i)
				answers, err := g.Allow(context.WithoutCancel(t.Context()), laneOf(a), 1, []*intent.Request{&r}, []budget.Charge{charge(r, 1)})
				switch {
				case err != nil:
					t.Error(err)
				case answers[0] == nil:
					granted[n]++
				case !errors.Is(answers[0], budget.ErrSpent):
					t.Error(answers[0])
				}
			}
		})
	}
	running.Wait()
	total := 0
	for _, n := range granted {
		total += n
	}
	state, err := first.Budget(t.Context(), here)
	must(t, err)
	if used := state.Used(budget.DayOf(w.now()), budget.Account{Kind: budget.OnChain}).Fee; total != room || used != chain.NewAmount(room) {
		t.Errorf("%d were granted, and %s is used, of %d", total, used, room)
	}
	w.judge()
}

// A batch larger than an event may be is reserved in parts; a charge that does not fit is
// refused by itself.
func TestAllowMany(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	w.register(g, alice)
	w.limit(g, budget.Account{Kind: budget.OnChain}, 450)
	var requests []*intent.Request
	var charges []budget.Charge
	for n := range 500 {
		r := request(n)
		requests, charges = append(requests, &r), append(charges, charge(r, 1))
	}
	charges[7].Fee = chain.NewAmount(1000)
	answers, err := g.Allow(t.Context(), laneOf(alice), 1, requests, charges)
	must(t, err)
	refused := 0
	for i, why := range answers {
		switch {
		case i == 7 && !errors.Is(why, budget.ErrOverLimit), i != 7 && why != nil && !errors.Is(why, budget.ErrSpent):
			t.Errorf("%d: %v", i, why)
		case why != nil:
			refused++
		}
	}
	open, err := g.Open(t.Context(), laneOf(alice))
	must(t, err)
	if refused != 50 || len(open) != 450 {
		t.Errorf("%d are refused, and something is set aside for %d", refused, len(open))
	}
	// A repeated call reserves nothing more.
	head, err := w.db.Log().Head(t.Context())
	must(t, err)
	_, err = g.Allow(t.Context(), laneOf(alice), 1, requests, charges)
	must(t, err)
	if now, err := w.db.Log().Head(t.Context()); err != nil || now != head {
		t.Errorf("%d events more, %v", now-head, err)
	}
	w.judge()
}

// Without limits nothing is recorded.
func TestUnlimited(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	w.register(g, alice)
	head, err := w.db.Log().Head(t.Context())
	must(t, err)
	must(t, w.allow(g, alice, 1, request(1), 5))
	must(t, g.Settle(t.Context(), laneOf(alice), 1, []budget.Spent{{Purpose: budget.Purpose{Intent: request(1).ID()}}}, nil))
	if now, err := w.db.Log().Head(t.Context()); err != nil || now != head {
		t.Errorf("%d events, %v", now-head, err)
	}
}

// Settling is idempotent across replicas; a former holder settles nothing.
func TestSettle(t *testing.T) {
	w := newWorld(t)
	g, other := w.replica(), w.replica()
	w.register(g, alice)
	w.limit(g, budget.Account{Kind: budget.OnChain}, 10)
	r := request(1)
	must(t, w.allow(g, alice, 1, r, 10))
	must(t, w.allow(other, alice, 2, r, 10))
	spent := []budget.Spent{{Purpose: budget.Purpose{Intent: r.ID()}, Sum: budget.Sum{Fee: chain.NewAmount(4)}}}
	if err := g.Settle(t.Context(), laneOf(alice), 1, spent, nil); !errors.Is(err, budget.ErrFenced) {
		t.Errorf("the older holder: %v", err)
	}
	if err := w.allow(g, alice, 1, request(2), 1); !errors.Is(err, budget.ErrFenced) {
		t.Errorf("the older holder: %v", err)
	}
	for _, one := range []*guard.Guard{other, other, g} {
		if err := one.Settle(t.Context(), laneOf(alice), 2, spent, nil); err != nil {
			t.Error(err)
		}
	}
	state, err := g.Budget(t.Context(), here)
	must(t, err)
	if used := state.Used(budget.DayOf(w.now()), budget.Account{Kind: budget.OnChain}).Fee; used != chain.NewAmount(4) {
		t.Errorf("%s is used", used)
	}
	w.judge()
}

// A signature on one replica obeys operators' earlier commands on another.
func TestHeedsOthers(t *testing.T) {
	w := newWorld(t)
	g, operator := w.replica(), w.replica()
	w.register(g, alice)
	ctx := t.Context()
	room := func() int {
		n, err := g.Room(ctx, laneOf(alice), signer.Load{InFlight: 3, Capacity: 10})
		must(t, err)
		return n
	}
	r := request(1)
	must(t, w.allow(g, alice, 1, r, 1))
	if room() != 7 {
		t.Errorf("there is room for %d", room())
	}
	for name, c := range map[string]struct {
		do, undo func()
		want     eventlog.Refusal
		noop     bool // may be signed
		room     int
	}{
		"everything is halted": {
			func() {
				w.flip(operator, safeguard.Throw{Scope: safeguard.Scope{Kind: safeguard.Deployment}, Actor: "ada", Reason: "fire", At: w.now()})
			},
			func() {
				w.flip(operator, safeguard.Resume{Scope: safeguard.Scope{Kind: safeguard.Deployment}, Actor: "ada", Reason: "out", At: w.now()})
			},
			safeguard.ErrHalted, false, 0,
		},
		"the client is halted": {
			func() {
				w.flip(operator, safeguard.Throw{Scope: safeguard.Scope{Kind: safeguard.OfClient, Client: "ann"}, Actor: "ada", Reason: "fire", At: w.now()})
			},
			func() {
				w.flip(operator, safeguard.Resume{Scope: safeguard.Scope{Kind: safeguard.OfClient, Client: "ann"}, Actor: "ada", Reason: "out", At: w.now()})
			},
			safeguard.ErrHalted, true, 7,
		},
		"another target": {
			func() {
				w.flip(operator, safeguard.SetTargets{Scope: safeguard.Scope{Kind: safeguard.OnChain, Chain: here}, Targets: chain.Targets{{To: &bob}}, Actor: "ada", Reason: "as agreed", At: w.now()})
			},
			func() {
				w.flip(operator, safeguard.SetTargets{Scope: safeguard.Scope{Kind: safeguard.OnChain, Chain: here}, Actor: "ada", Reason: "as agreed", At: w.now()})
			},
			safeguard.ErrTarget, true, 7,
		},
		"the signer is paused": {
			func() { w.order(operator, signer.Pause{Actor: "ada", Reason: "to look", At: w.now()}) },
			func() { w.order(operator, signer.Resume{Actor: "ada", Reason: "it is well", At: w.now()}) },
			guard.ErrStopped, false, 0,
		},
		"nothing is left": {
			func() { w.limit(operator, budget.Account{Kind: budget.OnChain}, 0) },
			func() { w.limit(operator, budget.Account{Kind: budget.OnChain}, 100) },
			budget.ErrOverLimit, false, 0,
		},
	} {
		c.do()
		if err := w.allow(g, alice, 1, r, 1); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		answers, err := g.Allow(ctx, laneOf(alice), 1, []*intent.Request{nil}, []budget.Charge{{Purpose: budget.Purpose{Nonce: 7}, Sum: budget.Sum{Fee: chain.NewAmount(1)}}})
		if err != nil || (answers[0] == nil) != c.noop {
			t.Errorf("%s: a no-op is answered %v, %v", name, answers, err)
		}
		if n := room(); n != c.room {
			t.Errorf("%s: there is room for %d, want %d", name, n, c.room)
		}
		c.undo()
		must(t, w.allow(g, alice, 1, r, 1))
	}
	if err := w.allow(g, bob, 1, r, 1); !errors.Is(err, guard.ErrStopped) {
		t.Errorf("a signer that nobody registered: %v", err)
	}
}

func (w *world) order(g *guard.Guard, c signer.Command) {
	w.t.Helper()
	_, err := g.Order(w.t.Context(), here, alice, c, meta)
	must(w.t, err)
}

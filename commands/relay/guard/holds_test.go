package guard_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// situations are operators' commands that hold a request, with the expected refusal.
func (w *world) situations(g *guard.Guard) []situation {
	everything, ann := safeguard.Scope{Kind: safeguard.Deployment}, safeguard.Scope{Kind: safeguard.OfClient, Client: "ann", Chain: here}
	throw := func(s safeguard.Scope) func() {
		return func() { w.flip(g, safeguard.Throw{Scope: s, Actor: "ada", Reason: "fire", At: w.now()}) }
	}
	resume := func(s safeguard.Scope) func() {
		return func() { w.flip(g, safeguard.Resume{Scope: s, Actor: "ada", Reason: "out", At: w.now()}) }
	}
	targets := func(all chain.Targets) func() {
		return func() {
			w.flip(g, safeguard.SetTargets{Scope: safeguard.Scope{Kind: safeguard.OnChain, Chain: here}, Targets: all, Actor: "ada", Reason: "as agreed", At: w.now()})
		}
	}
	back := func() { w.order(g, signer.Resume{Actor: "ada", Reason: "it is well", At: w.now()}) }
	fees := func(fee uint64) func() { return func() { w.limit(g, budget.Account{Kind: budget.OnChain}, fee) } }
	return []situation{
		{"nothing", func() {}, func() {}, "", "", true},
		{"everything is halted", throw(everything), resume(everything), safeguard.ErrHalted, safeguard.ErrHalted, true},
		{"the client is halted on the chain", throw(ann), resume(ann), safeguard.ErrHalted, safeguard.ErrHalted, true},
		{"another target", targets(chain.Targets{{To: &bob}}), targets(nil), safeguard.ErrTarget, "", true}, // it ends the intent
		{"the signer is paused", func() { w.order(g, signer.Pause{Actor: "ada", Reason: "to look", At: w.now()}) }, back, guard.ErrStopped, guard.ErrStopped, true},
		{"the signer drains", func() { w.order(g, signer.Drain{Actor: "ada", Reason: "to look", At: w.now()}) }, back, "", guard.ErrStopped, true},
		{"the budget is too small", fees(4), fees(100), budget.ErrOverLimit, budget.ErrOverLimit, false},
		{"the budget is spent", func() {
			fees(100)()
			must(w.t, w.allow(g, alice, 1, request(99), 96))
		}, fees(1000), budget.ErrSpent, budget.ErrSpent, false},
	}
}

type situation struct {
	name     string
	do, undo func()
	refused  eventlog.Refusal // refusal of a request to sign it; empty: none
	held     eventlog.Refusal // refusal of a nonce
	since    bool             // the hold's start is known
}

// Check returns the answer of Allow in every situation, and reserves nothing.
func TestCheckIsAllow(t *testing.T) {
	w := newWorld(t)
	g := w.replica()
	w.register(g, alice)
	r := request(1)
	for _, s := range w.situations(g) {
		s.do()
		switches, err := g.Switches(t.Context())
		must(t, err)
		key, err := g.Signer(t.Context(), here, alice)
		must(t, err)
		purse, err := g.Budget(t.Context(), here)
		must(t, err)
		before, err := w.db.Log().Head(t.Context())
		must(t, err)
		got := guard.Check(switches, key, purse, w.now(), laneOf(alice), r, charge(r, 5))
		if after, err := w.db.Log().Head(t.Context()); err != nil || after != before {
			t.Errorf("%s: %d events more, %v", s.name, after-before, err)
		}
		want := w.allow(g, alice, 1, r, 5)
		if s.refused == "" && (got != nil || want != nil) || s.refused != "" && (!errors.Is(got, s.refused) || !errors.Is(want, s.refused)) {
			t.Errorf("%s: Check answers %v, and Allow %v, not %q", s.name, got, want, s.refused)
		}
		s.undo()
		must(t, g.Settle(t.Context(), laneOf(alice), 1, []budget.Spent{{Purpose: charge(r, 5).Purpose}}, nil))
	}
	switches, err := g.Switches(t.Context())
	must(t, err)
	if err := guard.Check(switches, signer.State{}, budget.State{}, w.now(), laneOf(bob), r, charge(r, 5)); !errors.Is(err, guard.ErrStopped) {
		t.Errorf("of a signer that nobody registered it answers %v", err)
	}
}

// Holds returns the reason why an intent gets no nonce, and since when. For an intent with
// a nonce it returns the reason why it is not signed.
func TestHolds(t *testing.T) {
	w := newWorld(t)
	g, operator := w.replica(), w.replica()
	w.register(operator, alice)
	r := request(1)
	waiting := intent.State{Requested: intent.Requested{ID: r.ID(), Request: r, At: w.now()}}
	placed := waiting
	placed.Place = &intent.Place{Signer: alice}
	for _, s := range w.situations(operator) {
		at := w.now()
		s.do()
		w.pass(time.Minute) // and the known state is too old
		hold, err := g.Holds(t.Context(), laneOf(alice), waiting, charge(r, 5))
		must(t, err)
		if s.held == "" {
			if hold != nil {
				t.Errorf("%s: it is held by %+v", s.name, hold)
			}
		} else if hold == nil || !errors.Is(hold.Why, s.held) || s.since && !hold.Since.Equal(at) || !s.since && !hold.Since.IsZero() {
			t.Errorf("%s: it is held by %+v, not by %s since %s", s.name, hold, s.held, at)
		}
		hold, err = g.Holds(t.Context(), laneOf(alice), placed, budget.Charge{})
		must(t, err)
		if want := s.refused != "" && s.since && s.held != ""; (hold != nil) != want {
			t.Errorf("%s: one that has a nonce is held by %+v", s.name, hold)
		}
		s.undo()
	}
	hold, err := g.Holds(t.Context(), laneOf(bob), waiting, charge(r, 5))
	must(t, err)
	if hold == nil || !errors.Is(hold.Why, guard.ErrStopped) || !hold.Since.IsZero() {
		t.Errorf("by a signer that nobody registered it is held by %+v", hold)
	}
}

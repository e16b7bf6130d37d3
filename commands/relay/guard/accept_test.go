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
)

func TestAccept(t *testing.T) {
	w := newWorld(t)
	g, operator := w.replica(), w.replica()
	ctx := t.Context()
	named := func(a chain.Address) intent.Request {
		r := request(1)
		r.From = intent.From{Signer: &a}
		return r
	}
	must(t, g.Accept(ctx, request(1))) // no signer is known yet
	w.register(operator, alice, bob)
	serve := func(a chain.Address, list chain.Targets) {
		_, err := operator.Serve(ctx, here, a, list, "ada", "as agreed", meta)
		must(t, err)
		w.pass(time.Second) // the known state is too old
	}
	serve(alice, chain.Targets{{To: &bob}})
	if err := g.Accept(ctx, named(alice)); !errors.Is(err, signer.ErrTarget) {
		t.Errorf("a signer that may not: %v", err)
	}
	must(t, g.Accept(ctx, named(bob)))
	must(t, g.Accept(ctx, request(1))) // bob may
	serve(bob, chain.Targets{{To: &alice}})
	if err := g.Accept(ctx, request(1)); !errors.Is(err, signer.ErrTarget) {
		t.Errorf("a pool of which none may: %v", err)
	}
	other := request(1)
	other.Pool = "cold"
	if err := g.Accept(ctx, other); !errors.Is(err, signer.ErrPool) {
		t.Errorf("a pool that they are not in: %v", err)
	}
	// The targets stay when the signer is registered again.
	w.register(operator, bob)
	if err := g.Accept(ctx, named(bob)); !errors.Is(err, signer.ErrTarget) {
		t.Errorf("registered again: %v", err)
	}
	serve(bob, nil)
	must(t, g.Accept(ctx, named(bob)))

	w.limit(operator, budget.Account{Kind: budget.EachClient}, 0)
	w.pass(time.Second)
	if err := g.Accept(ctx, named(bob)); !errors.Is(err, budget.ErrOverLimit) {
		t.Errorf("no budget: %v", err)
	}
	w.limit(operator, budget.Account{Kind: budget.EachClient}, 5)
	w.pass(time.Second)
	must(t, w.allow(operator, bob, 1, request(8), 5))
	w.pass(time.Second)
	err := g.Accept(ctx, named(bob))
	var later *guard.Later
	if tomorrow := w.now().Truncate(24 * time.Hour).Add(24 * time.Hour); !errors.Is(err, budget.ErrSpent) || !errors.As(err, &later) || !w.now().Add(later.Wait).Equal(tomorrow) {
		t.Errorf("the budget is spent: %v, come back %+v", err, later)
	}
	w.pass(24 * time.Hour)
	must(t, g.Accept(ctx, named(bob)))
	w.flip(operator, safeguard.Throw{Scope: safeguard.Scope{Kind: safeguard.OnChain, Chain: here}, Actor: "ada", Reason: "fire", At: w.now()})
	w.pass(time.Second)
	if err := g.Accept(ctx, named(bob)); !errors.Is(err, safeguard.ErrHalted) {
		t.Errorf("halted: %v", err)
	}
}

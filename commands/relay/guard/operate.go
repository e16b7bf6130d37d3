package guard

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Operators' commands and queries. Each command has its actor, a reason and a time.

// Switches returns the current safeguards.
func (g *Guard) Switches(ctx context.Context) (safeguard.State, error) {
	return g.switches.now(ctx, g.Now())
}

// Switch changes a safeguard. This process obeys it at once.
func (g *Guard) Switch(ctx context.Context, c safeguard.Command, meta eventlog.Meta) (safeguard.State, error) {
	return g.switches.handle(ctx, c, meta, g.Now())
}

// Signer returns the current state of a signer.
func (g *Guard) Signer(ctx context.Context, on chain.ID, address chain.Address) (signer.State, error) {
	return g.signer(on, address).now(ctx, g.Now())
}

// Order handles an operator's command about a signer.
func (g *Guard) Order(ctx context.Context, on chain.ID, address chain.Address, c signer.Command, meta eventlog.Meta) (signer.State, error) {
	return g.signer(on, address).handle(ctx, c, meta, g.Now())
}

// Serve sets the targets that a signer may call; without targets it may call everything.
func (g *Guard) Serve(ctx context.Context, on chain.ID, address chain.Address, targets chain.Targets, actor, reason string, meta eventlog.Meta) (signer.State, error) {
	state, err := g.Signer(ctx, on, address)
	if err != nil {
		return state, err
	}
	switch {
	case !state.Known:
		return state, signer.ErrUnknown
	case reason == "":
		return state, signer.ErrInvalid.Because("a reason is needed")
	}
	return g.Order(ctx, on, address, signer.Register{Pools: state.Pools, Targets: targets, Actor: actor, Reason: reason, At: g.Now()}, meta)
}

// Budget returns the current budget of a chain.
func (g *Guard) Budget(ctx context.Context, on chain.ID) (budget.State, error) {
	return g.budget(on).now(ctx, g.Now())
}

// Limit sets a daily limit on spending on a chain.
func (g *Guard) Limit(ctx context.Context, on chain.ID, c budget.SetLimit, meta eventlog.Meta) (budget.State, error) {
	return g.budget(on).handle(ctx, c, meta, g.Now())
}

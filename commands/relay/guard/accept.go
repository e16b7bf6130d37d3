package guard

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
)

// Accept refuses an intent that may not be accepted now. Its client may be halted, its
// calls not allowed to the client or to any signer that could make them, a budget spent, or
// a rate exceeded. A signer that is unknown here may still be registered, so it refuses
// nothing.
func (g *Guard) Accept(ctx context.Context, r intent.Request) error {
	now := g.Now()
	since := now.Add(-g.Settings.Fresh)
	switches, err := g.switches.at(ctx, since, now)
	if err != nil {
		return err
	}
	calls := callsOf(r)
	if err := switches.Check(safeguard.Request{Client: r.Client, Chain: r.Chain, Calls: calls}); err != nil {
		return err
	}
	if err := g.served(ctx, r, calls); err != nil {
		return err
	}
	purse, err := g.budget(r.Chain).at(ctx, since, now)
	if err != nil {
		return err
	}
	// The fee is not known yet. It will not be zero.
	worst := budget.Charge{
		Purpose: budget.Purpose{Intent: r.ID()}, Client: r.Client, Subject: r.Subject, Sum: budget.Sum{Fee: chain.NewAmount(1)},
	}
	for _, c := range r.Calls {
		worst.Value = worst.Value.Plus(c.Value)
	}
	of := budget.Lane{}
	if r.Signer != nil {
		of.Signer = *r.Signer
	}
	if purse.Limited() {
		if err := purse.Check(budget.DayOf(now), of, worst); err != nil {
			return untilTomorrow(err, now)
		}
	}
	return g.rated(ctx, now, switches, r.Client, r.Subject)
}

// served refuses calls that none of the possible signers may make.
func (g *Guard) served(ctx context.Context, r intent.Request, calls []chain.Call) error {
	var signers []chain.Address
	switch {
	case r.Signer != nil:
		signers = []chain.Address{*r.Signer}
	case g.Members != nil:
		signers = g.Members(r.Pool)
	}
	now := g.Now()
	var refused error
	for _, a := range signers {
		key, err := g.signer(r.Chain, a).at(ctx, now.Add(-g.Settings.Fresh), now)
		if err != nil {
			return err
		}
		if !key.Known {
			return nil
		}
		if err := key.Serves(r.Pool, calls); err == nil {
			return nil
		} else if refused == nil {
			refused = err
		}
	}
	return refused
}

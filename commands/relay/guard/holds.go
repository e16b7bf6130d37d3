package guard

import (
	"context"
	"errors"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// Hold is the reason why an intent is not signed.
type Hold struct {
	Why   error     // a refusal
	Since time.Time // zero: not known
}

// Holds returns the reason why a lane does not give an intent a nonce or, if it has one
// there, does not sign it: a halt, the signer's status, or a budget without room for its
// cost. It is nil if there is none. Nothing is reserved, and the state may be as old as
// [Settings.Fresh].
func (g *Guard) Holds(ctx context.Context, id chain.Sequence, it intent.State, c budget.Charge) (*Hold, error) {
	now := g.Now()
	since := now.Add(-g.Settings.Fresh)
	switches, err := g.switches.at(ctx, since, now)
	if err != nil {
		return nil, err
	}
	r := it.Requested.Request
	asked := safeguard.Request{Client: r.Client, Chain: id.Chain, Calls: callsOf(r)}
	if err := switches.Check(asked); errors.Is(err, safeguard.ErrHalted) {
		return &Hold{err, switches.HaltedSince(asked)}, nil
	}
	key, err := g.signer(id.Chain, id.Sender).at(ctx, since, now)
	if err != nil {
		return nil, err
	}
	serves := key.Takes()
	if it.Place != nil {
		serves = key.Signs()
	}
	if !serves {
		return &Hold{stopped(key, id.Sender), sinceOf(key)}, nil
	}
	if it.Place != nil { // its cost was reserved before it got its nonce
		return nil, nil
	}
	purse, err := g.budget(id.Chain).at(ctx, since, now)
	if err != nil || !purse.Limited() {
		return nil, err
	}
	err = purse.Check(budget.DayOf(now), budget.Lane{Signer: id.Sender, NonceKey: id.Key}, c)
	if errors.Is(err, budget.ErrSpent) || errors.Is(err, budget.ErrOverLimit) { // any other refusal ends the intent
		return &Hold{Why: err}, nil
	}
	return nil, nil
}

// sinceOf returns since when a signer has its status, if an operator has set it.
func sinceOf(key signer.State) time.Time {
	if key.Known && key.Status() == key.Stance.Status {
		return key.Stance.Since
	}
	return time.Time{}
}

package guard

import (
	"context"
	"errors"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/signer"
)

// Hold is what keeps an intent from being signed for.
type Hold struct {
	Why   error     // a refusal
	Since time.Time // zero is not known
}

// Holds tells what keeps a lane from giving an intent a nonce or, if it has one there, from
// signing for it: a switch, how its signer stands, or a budget without room for what it may
// cost. It is nil if nothing of these does. Nothing is set aside, and what is known may be as
// old as [Settings.Fresh].
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
	if it.Place != nil { // what it costs was set aside before it had one
		return nil, nil
	}
	purse, err := g.budget(id.Chain).at(ctx, since, now)
	if err != nil || !purse.Limited() {
		return nil, err
	}
	err = purse.Check(budget.DayOf(now), budget.Lane{Signer: id.Sender, NonceKey: id.Key}, c)
	if errors.Is(err, budget.ErrSpent) || errors.Is(err, budget.ErrOverLimit) { // what else refuses ends the intent
		return &Hold{Why: err}, nil
	}
	return nil, nil
}

// sinceOf is since when a signer stands as it does, if an operator wishes it so.
func sinceOf(key signer.State) time.Time {
	if key.Known && key.Status() == key.Stance.Status {
		return key.Stance.Since
	}
	return time.Time{}
}

package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// quoted sets the gas and highest cost of a job's first attempt. It returns nil if the job
// is dropped.
func (a *actor) quoted(ctx context.Context, j *job) (*job, error) {
	it := j.intent.State
	gas, err := a.gas(ctx, j.id, it.Requested.Request)
	var q Quote
	if err == nil {
		q, err = a.quote(ctx, it, gas)
	}
	switch {
	case commands.IsRefusal(err) && !errors.Is(err, fee.ErrMarket):
		return nil, a.fail(ctx, j, err)
	case err == nil && q.Payer != nil && a.Payer == nil:
		err = fmt.Errorf("the key of the fee payer %s is not here", q.Payer)
	}
	if err != nil {
		return nil, err
	}
	j.gas, j.worst = q.Gas, q.Worst
	return j, nil
}

// Quote is the gas and cost of an intent's first attempt in a lane, as of now.
type Quote struct {
	Gas   uint64
	Worst budget.Charge  // highest cost
	Payer *chain.Address // the account that pays the fee; nil: the sender
}

// Quote quotes an intent before it has a nonce. It refuses as [Chain.Gas] and [Fees.Offer]
// do; of these only [fee.ErrMarket] is temporary. Any other error means that the quote is
// not known now.
func (l *Lane) Quote(ctx context.Context, it intent.State) (q Quote, err error) {
	gas, err := l.Node.Gas(ctx, l.ID, it.Requested.Request)
	if err != nil {
		return q, err
	}
	return l.quote(ctx, it, gas)
}

// quote is Quote with a known gas limit.
func (l *Lane) quote(ctx context.Context, it intent.State, gas uint64) (Quote, error) {
	offer, err := l.Fees.Offer(ctx, l.termsOf(it, gas))
	return Quote{gas, chargeOf(it.Requested, gas, offer.Fee), offer.Payer}, err
}

// Least returns the lowest cost of an intent's first attempt in a lane, as of now. It does
// not ask nodes for gas that the intent leaves open. Errors are the errors of [Fees.Offer].
func (l *Lane) Least(ctx context.Context, it intent.State) (budget.Charge, error) {
	gas := max(it.Requested.Request.Gas.Limit, fee.GasMin)
	offer, err := l.Fees.Offer(ctx, l.termsOf(it, gas))
	return chargeOf(it.Requested, gas, offer.Fee), err
}

package relayer

import (
	"context"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// quoted is a job that was inspected, and what its first attempt costs; nil when it is not to
// be done.
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
		err = fmt.Errorf("%s is to pay, whose key is not here", q.Payer)
	}
	if err != nil {
		return nil, err
	}
	j.gas, j.worst = q.Gas, q.Worst
	return j, nil
}

// Quote is what an intent's first attempt takes in a lane, as of now.
type Quote struct {
	Gas   uint64
	Worst budget.Charge  // what it may cost
	Payer *chain.Address // who pays the fee, nil if the sender does
}

// Quote finds that out before an intent has a nonce. Its refusals are those of [Chain.Gas]
// and [Fees.Offer], of which [fee.ErrMarket] alone passes; any other error says that it is
// not known now.
func (l *Lane) Quote(ctx context.Context, it intent.State) (q Quote, err error) {
	gas, err := l.Node.Gas(ctx, l.ID, it.Requested.Request)
	if err != nil {
		return q, err
	}
	return l.quote(ctx, it, gas)
}

// quote is a Quote of what takes so much gas.
func (l *Lane) quote(ctx context.Context, it intent.State, gas uint64) (Quote, error) {
	offer, err := l.Fees.Offer(ctx, l.termsOf(it, gas))
	return Quote{gas, chargeOf(it.Requested, gas, offer.Fee), offer.Payer}, err
}

// Least is what an intent's first attempt costs at least in a lane, as of now: nodes are not
// asked for the gas that it needs, if it does not say. Errors are those of [Fees.Offer].
func (l *Lane) Least(ctx context.Context, it intent.State) (budget.Charge, error) {
	gas := max(it.Requested.Request.Gas.Limit, fee.GasMin)
	offer, err := l.Fees.Offer(ctx, l.termsOf(it, gas))
	return chargeOf(it.Requested, gas, offer.Fee), err
}

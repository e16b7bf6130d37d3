package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
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

// chargeOf returns the highest cost of an attempt for an intent, at this gas limit and fee.
func chargeOf(of intent.Requested, gas uint64, offered chain.Fee) budget.Charge {
	r := of.Request
	return budget.Charge{
		Purpose: budget.Purpose{Intent: of.ID}, Client: r.Client, Subject: r.Subject,
		Sum: budget.Sum{Fee: chain.Amount(offered.MaxFee).Times(gas), Value: valueOf(r)},
	}
}

// valueOf returns the value that a request's calls move.
func valueOf(r intent.Request) (sum chain.Amount) {
	for _, c := range r.Calls {
		sum = sum.Plus(c.Value)
	}
	return sum
}

// costOf returns the cost of a mined attempt: at most its offer, and the whole offer if the
// node does not report the price.
func costOf(s standing, made lane.Made, r chain.Receipt) (sum budget.Sum) {
	price := made.Fee.MaxFee.Int()
	if paid, err := uint256.FromDecimal(r.EffectiveGasPrice); err == nil && paid.Lt(price) {
		price = paid
	}
	sum.Fee = chain.AmountOf(price).Times(r.GasUsed)
	if !made.Intent.IsZero() && r.Status == 1 {
		sum.Value = valueOf(s.job.intent.State.Requested.Request)
	}
	return sum
}

// termsOf returns the terms of an intent's first attempt at this gas limit; 0 is unknown.
// The no-op that replaces the attempt offers a tenth more, and has to stay within the same
// limits.
func (l *Lane) termsOf(it intent.State, limit uint64) fee.Terms {
	gas := it.Requested.Request.Gas
	if limit != 0 {
		limit = max(limit, outbidding(l.noOpGas(0)))
	}
	return fee.Terms{
		Gas:    limit,
		Legacy: l.Format.Type == 0, Urgency: fee.Urgency(gas.Urgency), Floor: chain.Price(it.Floor),
		MaxFee: chain.Price(gas.MaxFee), MaxPriorityFee: chain.Price(gas.MaxPriorityFee),
		Sender: l.ID.Sender, Token: gas.FeeToken, Sponsored: gas.Sponsored, GaveWay: len(it.GaveWay),
	}
}

// outbidding returns gas plus a tenth: a no-op with that much gas costs as much as one at a
// fee that replaces the intent's.
func outbidding(gas uint64) uint64 { return gas + gas/10 + 1 }

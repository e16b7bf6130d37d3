package relayer

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// A client says itself how much gas its intent takes, and how much value it moves. What the
// signer cannot pay beside what it has in flight gets no nonce: nodes would refuse it, and
// all behind it would wait. Nor does it tell that the signer is poor, which stops it for all
// clients: that is told by what an ordinary intent costs.

// ordinaryGas is how much gas an ordinary intent takes at most: a few transfers to accounts
// that the chain has to make.
const ordinaryGas = 500_000

// admissible answers for each request whether it may have a nonce: nil, or why not. The guard
// sets nothing aside for what the signer cannot pay.
func (a *actor) admissible(ctx context.Context, requests []*intent.Request, charges []budget.Charge) ([]error, error) {
	answers := a.payable(requests)
	var asked []int
	var theirs []*intent.Request
	var costs []budget.Charge
	for i, why := range answers {
		if why == nil {
			asked, theirs, costs = append(asked, i), append(theirs, requests[i]), append(costs, charges[i])
		}
	}
	if len(asked) == 0 {
		return answers, nil
	}
	told, err := a.ask(ctx, theirs, costs)
	if err != nil {
		return nil, err
	}
	for i, of := range asked {
		answers[of] = told[i]
	}
	return answers, nil
}

// payable answers for each of those ready whether the signer has what it may cost, beside all
// that is in flight and those before it. An ordinary one that moves no value always has: if
// that is too much, it is the signer who is poor, and whoever watches it has to be told.
func (a *actor) payable(requests []*intent.Request) []error {
	answers := make([]error, len(requests))
	balance, seen := a.Guard.Balance(a.Chain, a.ID.Sender)
	if !seen {
		return answers
	}
	var used chain.Amount
	for _, s := range a.slots() {
		if len(s.Attempts) > 0 && s.Landed == nil && !s.seen() {
			used = used.Plus(a.feeOf(s)).Plus(a.valueAt(s))
		}
	}
	for i, r := range requests {
		cost := a.ready[i].worst.Sum.Value
		if !elsewhere(r.Gas) {
			cost = cost.Plus(a.ready[i].worst.Sum.Fee)
		}
		total := used.Plus(cost)
		if total.Cmp(balance) > 0 && (a.ready[i].gas > ordinaryGas || !a.ready[i].worst.Sum.Value.IsZero()) {
			answers[i] = fmt.Errorf("it may cost %s, and what is in flight %s; the signer has %s", cost, used, balance)
			continue
		}
		used = total
	}
	return answers
}

// elsewhere reports whether a fee is not paid of what the signer usually pays fees in.
func elsewhere(g intent.Gas) bool { return g.Sponsored || g.FeeToken != nil }

// feeOf is the most that the last attempt at a nonce takes of what the signer usually pays
// fees in.
func (a *actor) feeOf(s standing) chain.Amount {
	last := s.Attempts[len(s.Attempts)-1]
	gas := a.noOpGas(s.Nonce)
	if !last.Intent.IsZero() {
		wish := s.job.intent.State.Requested.Request.Gas
		if elsewhere(wish) {
			return chain.Amount{}
		}
		gas = max(s.gas, wish.Limit)
	}
	return chain.Amount(last.Fee.MaxFee).Times(gas)
}

// valueAt is what the last attempt at a nonce moves.
func (a *actor) valueAt(s standing) (value chain.Amount) {
	if !s.Attempts[len(s.Attempts)-1].Intent.IsZero() {
		value = valueOf(s.job.intent.State.Requested.Request)
	}
	return value
}

// warn tells the guard when nodes have said that the signer cannot pay for what it has
// signed: of fees, in what it usually pays them in, and no more than an ordinary intent costs.
func (a *actor) warn(ctx context.Context) error {
	if a.Guard == nil {
		return nil
	}
	lacking := false
	var needed chain.Amount
	for _, s := range a.slots() {
		if len(s.Attempts) == 0 || s.stale || s.Landed != nil || s.seen() {
			continue
		}
		last := s.Attempts[len(s.Attempts)-1]
		told := s.news
		s.news = false
		if !last.Intent.IsZero() && elsewhere(s.job.intent.State.Requested.Request.Gas) {
			continue
		}
		needed = needed.Plus(a.feeOf(s))
		lacking = lacking || told && s.txs[last.Hash].lacks
	}
	a.lacking = a.lacking || lacking
	if !a.lacking {
		return nil
	}
	ordinary, err := a.Fees.Offer(ctx, fee.Terms{NoOp: true, Legacy: a.Format.Type == 0, Sender: a.ID.Sender})
	if err != nil {
		return fmt.Errorf("what an ordinary intent costs: %w", err)
	}
	a.lacking = false
	if most := chain.Amount(ordinary.Fee.MaxFee).Times(ordinaryGas); needed.Cmp(most) > 0 {
		needed = most
	}
	return a.Guard.Lacks(ctx, a.ID, needed)
}

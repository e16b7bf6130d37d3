package relayer

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// A client chooses how much gas its intent may use and how much value it moves. The relay
// gives no nonce to an intent that the signer cannot pay for: nodes would refuse the
// transaction, and all later nonces would wait. Such an intent does not mark the signer as
// low either, which would stop it for all clients. The threshold is learned from the cost
// of an ordinary intent, or of a no-op if no node refused anything.

// ordinaryGas is the most gas that an ordinary intent uses: a few transfers that create
// accounts.
const ordinaryGas = 500_000

// admissible checks which requests may get a nonce now. It returns nil or the refusal of
// each request. The guard reserves no budget for what a client alone asks too much of. What
// the guard refuses takes no balance from others: requests are added up across clients
// only after it has answered. Budget reserved for requests without a nonce is released by
// [actor.square].
func (a *actor) admissible(ctx context.Context, requests []*intent.Request, charges []budget.Charge) ([]error, error) {
	answers := a.patient(requests)
	a.payable(requests, answers, func(r *intent.Request) string { return r.Client })
	a.light(requests, answers)
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
	a.payable(requests, answers, func(*intent.Request) string { return "" })
	return answers, nil
}

// payable checks for each job of a.ready that the signer's last known balance covers its
// worst cost, all intents in flight, and the jobs before it with the same payer, which is
// the client or everybody. An ordinary intent that moves no value always passes: if the
// balance is too small for it, the signer is low, and the guard has to learn that. Entries
// of answers that are not nil already are skipped and count for nothing.
func (a *actor) payable(requests []*intent.Request, answers []error, payer func(*intent.Request) string) {
	balance, seen := a.Guard.Balance(a.Chain, a.ID.Sender)
	if !seen {
		return
	}
	var flying chain.Amount
	for _, s := range a.slots() {
		if len(s.Attempts) > 0 && s.Landed == nil && !s.seen() {
			flying = flying.Plus(a.feeOf(s)).Plus(a.valueAt(s))
		}
	}
	used := map[string]chain.Amount{}
	for i, r := range requests {
		if answers[i] != nil {
			continue
		}
		cost := a.ready[i].worst.Sum.Value
		if !elsewhere(r.Gas) {
			cost = cost.Plus(a.ready[i].worst.Sum.Fee)
		}
		of := payer(r)
		total := used[of].Plus(cost)
		if flying.Plus(total).Cmp(balance) > 0 && (a.ready[i].gas > ordinaryGas || !a.ready[i].worst.Sum.Value.IsZero()) {
			answers[i] = fmt.Errorf("it may cost %s, and transactions before it %s; the signer has %s", cost, flying.Plus(used[of]), balance)
			a.short = true
			continue
		}
		used[of] = total
	}
}

// elsewhere reports whether the fee is not paid from the signer's usual fee balance.
func elsewhere(g intent.Gas) bool { return g.Sponsored || g.FeeToken != nil }

// feeOf is the maximum fee of the last attempt at a nonce, as far as the signer's usual fee
// balance pays it.
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

// valueAt is the value that the last attempt at a nonce moves.
func (a *actor) valueAt(s standing) (value chain.Amount) {
	if !s.Attempts[len(s.Attempts)-1].Intent.IsZero() {
		value = valueOf(s.job.intent.State.Requested.Request)
	}
	return value
}

// warn reports to the guard that the signer lacks funds. The amount is the fees of all
// unmined attempts if a node refused one for lack of funds, at most the fee of an ordinary
// intent. If intents only wait for funds, the amount is the fee of a no-op.
func (a *actor) warn(ctx context.Context) error {
	if a.Guard == nil {
		return nil
	}
	needed, refused := a.refusedFor()
	a.lacking = a.lacking || refused
	if !a.lacking && !a.short {
		return nil
	}
	ordinary, err := a.Fees.Offer(ctx, fee.Terms{NoOp: true, Legacy: a.Format.Type == 0, Sender: a.ID.Sender})
	if err != nil {
		return fmt.Errorf("what an ordinary intent costs: %w", err)
	}
	price := chain.Amount(ordinary.Fee.MaxFee)
	if most := price.Times(ordinaryGas); needed.Cmp(most) > 0 {
		needed = most
	}
	if least := price.Times(a.Settings.NoOpGas); !a.lacking || a.short && needed.Cmp(least) < 0 {
		needed = least
	}
	a.lacking, a.short = false, false
	return a.Guard.Lacks(ctx, a.ID, needed)
}

// refusedFor returns the fees of all unmined attempts, and whether a node has refused one
// of them for lack of funds since the last call.
func (a *actor) refusedFor() (needed chain.Amount, refused bool) {
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
		refused = refused || told && s.txs[last.Hash].lacks
	}
	return needed, refused
}

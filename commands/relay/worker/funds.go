package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
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
// each request. Requests beyond a client's own limits never reach the guard, so no budget
// is reserved for them. Requests that the guard refuses reserve no balance: requests are
// added up across clients only after it has answered. Budget reserved for requests without
// a nonce is released by [actor.square].
func (a *actor) admissible(ctx context.Context, requests []*intent.Request, charges []budget.Charge) ([]error, error) {
	answers := a.patient(requests)
	defer func() { a.note(requests, answers) }()
	a.payable(requests, answers, false)
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
	a.payable(requests, answers, true)
	return answers, nil
}

var (
	// errShort: the signer's balance does not cover it.
	errShort = errors.New("the signer's balance is too low")
	// errOutspent: an ordinary intent waits for its client's transactions in flight, as the
	// balance does not cover more. The intent is claimed again later.
	errOutspent = errors.New("the client has transactions in flight, and the signer's balance does not cover more")
)

func isShort(err error) bool { return errors.Is(err, errShort) }

// payable checks for each job of a.ready that the signer's last known balance covers its
// highest cost. The balance also has to cover all transactions in flight in lanes of this
// process, and the jobs before it: of its client, or of all clients if together is set. It
// also has to cover the oldest intent of another client that waits for funds. A client's
// first ordinary intent in flight always passes: if the balance is too small for it, the
// signer is low, and the guard has to learn that. After an ordinary intent that waits, all
// later ones of its client wait, to keep their order. Entries of answers that are not nil
// already are skipped and count for nothing.
func (a *actor) payable(requests []*intent.Request, answers []error, together bool) {
	balance, seen := a.Guard.Balance(a.Chain, a.ID.Sender)
	if !seen {
		return
	}
	a.purses.mu.Lock()
	defer a.purses.mu.Unlock()
	p := a.purses.of(a.ID.Sender)
	mine := a.inFlight()
	p.lanes[a.ID.Key] = mine
	had, total := p.spent()
	client, oldest := p.oldest(balance, a.Now().Add(-waitsMost*a.Settings.Claim))
	before := map[string]chain.Amount{} // by payer: the client, or "" for everybody
	outspent := map[string]error{}
	for i, r := range requests {
		if answers[i] != nil {
			continue
		}
		payer := r.Client
		if together {
			payer = ""
		}
		j, cost := a.ready[i], costIn(*r, a.ready[i].worst)
		needs := total.Plus(before[payer]).Plus(cost)
		short := needs.Cmp(balance) > 0
		if !oldest.id.IsZero() && client != r.Client {
			needs = needs.Plus(oldest.cost)
		}
		ordinary := isOrdinary(j)
		switch lacks := needs.Cmp(balance) > 0 && !cost.IsZero(); {
		case outspent[r.Client] != nil:
			answers[i] = outspent[r.Client]
			continue
		case lacks && ordinary && !had[r.Client].IsZero():
			outspent[r.Client] = fmt.Errorf("%w: it may cost %s, earlier transactions %s, and the signer has %s", errOutspent, cost, needs.Minus(cost), balance)
			answers[i], a.weighed = outspent[r.Client], a.held.State.InFlight()
			continue
		case lacks && !ordinary:
			answers[i] = fmt.Errorf("%w: it may cost %s, and earlier transactions %s; the signer has %s", errShort, cost, needs.Minus(cost), balance)
			a.short = a.short || short
			continue
		}
		if oldest.id == j.id {
			oldest = wait{}
		}
		before[payer], had[r.Client] = before[payer].Plus(cost), had[r.Client].Plus(cost)
		if together {
			mine.clients[r.Client] = mine.clients[r.Client].Plus(cost)
		}
	}
}

// waitsMost is the number of claim times for which room is kept for an intent that waits
// for funds and is not looked at again.
const waitsMost = 3

// note tells the signer's purse which requests wait for funds.
func (a *actor) note(requests []*intent.Request, answers []error) {
	a.purses.mu.Lock()
	defer a.purses.mu.Unlock()
	p := a.purses.of(a.ID.Sender)
	for i, r := range requests {
		if j := a.ready[i]; isShort(answers[i]) {
			p.waiting(r.Client, j.id, costIn(*r, j.worst), a.Now())
		} else {
			p.goesOn(r.Client, j.id)
		}
	}
}

// isOrdinary reports whether an intent costs no more than usual: it moves no value, uses
// little gas, and its client has not asked for a higher fee.
func isOrdinary(j *job) bool {
	return j.gas <= ordinaryGas && j.worst.Sum.Value.IsZero() && j.intent.State.Floor.IsZero()
}

// costIn returns the part of a charge that the signer's usual balance pays.
func costIn(r intent.Request, c budget.Charge) chain.Amount {
	if elsewhere(r.Gas) {
		return c.Sum.Value
	}
	return c.Sum.Value.Plus(c.Sum.Fee)
}

// account tells the other lanes of the signer how much this lane's transactions may cost.
func (a *actor) account(context.Context) error {
	a.purses.put(a.ID, a.inFlight())
	return nil
}

// inFlight returns the cost of the lane's transactions that no block contains, and of
// intents with nonces that are not signed yet.
func (a *actor) inFlight() spending {
	s := spending{clients: map[string]chain.Amount{}}
	for _, one := range a.slots() {
		r := one.job.intent.State.Requested.Request
		switch {
		case one.Landed != nil || one.seen():
		case len(one.Attempts) == 0 && !one.id.IsZero():
			s.clients[r.Client] = s.clients[r.Client].Plus(costIn(r, one.worst))
		case len(one.Attempts) == 0:
		case one.id.IsZero():
			s.noOps = s.noOps.Plus(a.feeOf(one))
		default:
			s.clients[r.Client] = s.clients[r.Client].Plus(a.feeOf(one)).Plus(a.valueAt(one))
		}
	}
	return s
}

// affordable checks that the signer's last known balance covers an order, the transactions in
// flight at lower nonces of the lane, and a no-op that replaces the order. Nodes refuse an
// order that costs more, and then its nonce can neither be bumped nor give way. If the fee of
// a speed-up is too much, affordable prices the order without it. First attempts without a
// speed-up were checked before they got their nonces.
func (a *actor) affordable(ctx context.Context, o *order) error {
	if o.intent.IsZero() || a.Guard == nil {
		return nil
	}
	balance, seen := a.Guard.Balance(a.Chain, a.ID.Sender)
	floor := o.job.intent.State.Floor
	if !seen || len(o.Attempts) == 0 && floor.IsZero() {
		return nil
	}
	cost := a.worstOf(*o)
	if cost.Cmp(balance) <= 0 {
		return nil
	}
	if floor.IsZero() || o.faster {
		return fmt.Errorf("%w: it may cost %s with lower nonces, and the signer has %s", errShort, cost, balance)
	}
	o.plain = true
	if err := a.price(ctx, o); err != nil {
		return err
	}
	if cost = a.worstOf(*o); len(o.Attempts) > 0 && cost.Cmp(balance) > 0 {
		return fmt.Errorf("%w: it may cost %s with lower nonces, and the signer has %s", errShort, cost, balance)
	}
	return nil
}

// worstOf returns the cost to the signer's usual balance of an order, or of the no-op that
// replaces it, and of the transactions in flight at lower nonces of the lane.
func (a *actor) worstOf(o order) (sum chain.Amount) {
	r := o.job.intent.State.Requested.Request
	price := chain.Amount(o.offer.Fee.MaxFee)
	cost := valueOf(r)
	if !elsewhere(r.Gas) {
		cost = cost.Plus(price.Times(max(o.gas, r.Gas.Limit)))
	}
	for _, s := range a.slots() {
		if s.Nonce < o.Nonce && len(s.Attempts) > 0 && s.Landed == nil && !s.seen() {
			sum = sum.Plus(a.feeOf(s)).Plus(a.valueAt(s))
		}
	}
	return sum.Plus(cost.Max(price.Times(outbidding(a.noOpGas(o.Nonce)))))
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
		return fmt.Errorf("compute the cost of an ordinary intent: %w", err)
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

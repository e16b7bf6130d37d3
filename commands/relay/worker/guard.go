package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// room returns how many intents may be claimed now.
func (a *actor) room(ctx context.Context) (int, error) {
	load := signer.Load{InFlight: a.held.State.InFlight(), Capacity: a.Settings.Budget}
	room := load.Capacity - load.InFlight
	if room > 0 && a.Guard != nil {
		var err error
		if room, err = a.Guard.Room(ctx, a.ID, load); err != nil {
			return 0, fmt.Errorf("compute the number of intents to claim: %w", err)
		}
	}
	return min(max(room, 0), claimMax), nil
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

// purposeOf returns the purpose of the budget reserved at a nonce: the intent, which
// includes the no-op that may replace it, or a no-op without an intent.
func purposeOf(s standing) budget.Purpose {
	if s.id.IsZero() {
		return budget.Purpose{Nonce: s.Nonce}
	}
	return budget.Purpose{Intent: s.id}
}

// lasting reports whether operators' settings refuse an intent for good. A signer's refusal
// is not lasting for an intent of a pool, as another signer may be allowed.
func lasting(why error, r intent.Request) bool {
	return errors.Is(why, safeguard.ErrTarget) || errors.Is(why, budget.ErrImpossible) ||
		errors.Is(why, signer.ErrTarget) && r.Signer != nil
}

// admit keeps in a.ready the intents that may be signed, after reserving their highest cost
// from the budget. An intent that may never be signed fails. An intent that may not be
// signed now keeps its claim until that lapses, and delays no other claim meanwhile. In an
// ordering group it is first returned to the queue, with the intents behind it. An intent
// of a pool is also returned first, as another signer may have the budget for it.
func (a *actor) admit(ctx context.Context) error {
	if a.Guard == nil || len(a.ready) == 0 {
		return nil
	}
	requests, charges := make([]*intent.Request, len(a.ready)), make([]budget.Charge, len(a.ready))
	for i, j := range a.ready {
		requests[i], charges[i] = &j.intent.State.Requested.Request, j.worst
	}
	answers, err := a.admissible(ctx, requests, charges)
	if err != nil {
		all := a.ready
		a.ready = nil
		return errors.Join(err, a.giveBack(ctx, idsOf(all)))
	}
	a.crash("budget.reserved")
	var admitted, back []*job
	var trouble error
	held := map[intent.Row]bool{} // groups with an intent that has to wait
	for i, j := range a.ready {
		row := requests[i].Waiting(0).Row
		switch why := answers[i]; {
		case why == nil && !held[row]:
			admitted = append(admitted, j)
		case errors.Is(why, errHeavy), errors.Is(why, errOutspent): // so are the intents behind it in its group
			back = append(back, j)
		case lasting(why, *requests[i]):
			trouble = errors.Join(trouble, a.fail(ctx, j, why))
		default:
			a.readInVain(requests[i].Client, j.id, requests[i].Size())
			from := requests[i].Waiting(0).From
			switch held[row] = row.Order != ""; {
			case !held[row] && from.Signer != nil: // no other signer could execute it
			case a.putOff(j.id, from):
				a.leaves = a.leaves || held[row]
			default:
				back = append(back, j)
			}
			if why != nil {
				a.waits(why) // reports it, until the intent is looked at again
			}
		}
	}
	a.ready = admitted
	return errors.Join(trouble, a.giveBack(ctx, idsOf(back)))
}

func idsOf(jobs []*job) []chain.IntentID {
	ids := make([]chain.IntentID, len(jobs))
	for i, j := range jobs {
		ids[i] = j.id
	}
	return ids
}

// ask asks the guard. If the guard fences this process off, it no longer holds the lane,
// and the actor ends.
func (a *actor) ask(ctx context.Context, requests []*intent.Request, charges []budget.Charge) ([]error, error) {
	answers, err := a.Guard.Allow(ctx, a.ID, a.token, requests, charges)
	if errors.Is(err, budget.ErrFenced) {
		return nil, overError{err}
	}
	if err != nil {
		return nil, fmt.Errorf("check whether the signer may sign: %w", err)
	}
	return answers, nil
}

// allowed returns the orders that the guard allows. An unsigned intent that is not allowed
// now returns its nonce, so that no other intent waits for it.
func (a *actor) allowed(ctx context.Context, orders []order) (allowed []order, trouble error) {
	if a.Guard == nil || len(orders) == 0 {
		return orders, trouble
	}
	requests, charges := make([]*intent.Request, len(orders)), make([]budget.Charge, len(orders))
	for i, o := range orders {
		requests[i], charges[i] = a.asked(o)
	}
	answers, err := a.ask(ctx, requests, charges)
	if err != nil {
		return nil, errors.Join(trouble, err)
	}
	var back []standing
	given := map[uint64]bool{}
	for i, o := range orders {
		if answers[i] == nil {
			continue
		}
		trouble = errors.Join(trouble, fmt.Errorf("nonce %d: %w", o.Nonce, answers[i]))
		for _, s := range a.unsignedFrom(o) {
			if !given[s.Nonce] {
				given[s.Nonce], back = true, append(back, s)
			}
		}
	}
	for i, o := range orders {
		if answers[i] == nil && !given[o.Nonce] {
			allowed = append(allowed, o)
		}
	}
	return allowed, errors.Join(trouble, a.release(ctx, reasonGuard, back))
}

// asked returns the guard's view of an order: its request, nil for a no-op, and its charge.
func (a *actor) asked(o order) (*intent.Request, budget.Charge) {
	r := o.job.intent.State.Requested.Request
	if !o.intent.IsZero() {
		return &r, chargeOf(o.job.intent.State.Requested, o.job.gas, o.offer.Fee)
	}
	fee := chain.Amount(o.offer.Fee.MaxFee).Times(a.noOpGas(o.Nonce))
	c := budget.Charge{Purpose: purposeOf(o.standing), Sum: budget.Sum{Fee: fee}}
	if !o.id.IsZero() {
		c.Client, c.Subject = r.Client, r.Subject
	}
	return nil, c
}

// unsignedFrom returns the nonces to give back if an order may not be signed: its own, if
// unsigned, and the nonces of later intents of its ordering group. It returns none if one
// of these is signed, because the group would be mined in another order.
func (a *actor) unsignedFrom(o order) (back []standing) {
	if o.intent.IsZero() || len(o.Attempts) > 0 {
		return nil
	}
	row := o.job.intent.State.Requested.Request.Waiting(0).Row
	if row.Order == "" {
		return []standing{o.standing}
	}
	for _, s := range a.slots() {
		switch {
		case s.Nonce < o.Nonce || s.id.IsZero():
		case s.stale:
			return nil
		case s.job.intent.State.Requested.Request.Waiting(0).Row != row:
		case len(s.Attempts) > 0:
			return nil
		default:
			back = append(back, s)
		}
	}
	return back
}

// square releases the budget of purposes that have no nonce any more: nothing was signed
// for them, or the final chain has used the nonce otherwise. Purposes that did cost
// something were settled before their nonce was closed. What an intent did not spend is
// kept for the no-op that fills its nonce.
func (a *actor) square(ctx context.Context) error {
	if a.Guard == nil {
		return nil
	}
	open, err := a.Guard.Open(ctx, a.ID)
	if err != nil || len(open) == 0 {
		return err
	}
	wanted := map[budget.Purpose]bool{}
	var holes []uint64
	for _, s := range a.slots() {
		wanted[purposeOf(s)] = true
		if s.Filled && len(s.Attempts) == 0 {
			holes = append(holes, s.Nonce)
		}
	}
	var spent []budget.Spent
	for _, p := range open {
		if !wanted[p] {
			spent = append(spent, budget.Spent{Purpose: p})
		}
	}
	return a.spend(ctx, spent, holes)
}

// paid settles the cost of final landings.
func (a *actor) paid(ctx context.Context, mined []standing, landings []lane.Landing) error {
	if a.Guard == nil {
		return nil
	}
	told := map[uint64]lane.Landing{}
	for _, l := range landings {
		told[l.Nonce] = l
	}
	var spent []budget.Spent
	signed := false // since the signer failed last
	for _, s := range mined {
		landing, is := told[s.Nonce]
		made, d, _ := s.executed()
		if landing.Final {
			spent = append(spent, budget.Spent{Purpose: purposeOf(s), Sum: costOf(s, made, *d.Receipt)})
		}
		signed = signed || is && made.At.After(a.failing)
	}
	if signed {
		if err := a.Guard.Succeeded(ctx, a.ID); err != nil {
			return err
		}
	}
	if len(spent) == 0 {
		return nil
	}
	err := a.spend(ctx, spent, nil)
	a.crash("budget.settled")
	return err
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

func (a *actor) spend(ctx context.Context, spent []budget.Spent, holes []uint64) error {
	for some := range slices.Chunk(spent, budget.BatchMax) {
		err := a.Guard.Settle(ctx, a.ID, a.token, some, holes)
		if errors.Is(err, budget.ErrFenced) {
			return overError{err}
		}
		if err != nil {
			return fmt.Errorf("settle the spent amounts: %w", err)
		}
	}
	return nil
}

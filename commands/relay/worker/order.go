package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// offers is what a lane knows of its attempts and of what they may cost.
type offers struct {
	fresh     map[chain.Hash][]byte // signed here, and not handed to delivery yet
	front     front
	stalls    bool // in this turn
	pin       pin
	penalties map[string]penalty // by client whose intents gave way, see [actor.penalize]
	purses    *Purses
	failing   time.Time // last failure of the signer
	lacking   bool      // to report to the guard: nodes found the signer short of funds
}

// order is a transaction to be signed at a nonce.
type order struct {
	standing
	intent chain.IntentID // zero: a no-op
	offer  fee.Offer
	unsent []chain.Hash // attempts so far that were not sent
	faster bool         // it has not stalled: its client has asked for a higher fee
	plain  bool         // without the client's higher fee, which the signer cannot pay
}

// orders returns the orders of all nonces, by rising nonce. An unsigned intent that may no
// longer pay the price of gas returns its nonce, with later intents of its ordering group,
// unless one of these is signed. A stalled intent whose fee cannot be raised is marked to
// give way.
func (a *actor) orders(ctx context.Context) ([]order, error) {
	var orders []order
	var trouble error
	stalled, err := a.stalled(ctx)
	if over := (overError{}); errors.As(err, &over) {
		return nil, err
	}
	trouble = errors.Join(trouble, err)
	ask := a.askOnce(ctx)
	for _, s := range a.slots() {
		is := stalled != nil && *stalled == s.Nonce
		if is && len(s.Attempts) > 0 {
			trouble = errors.Join(trouble, a.countStall(ctx, s))
			spent, err := a.isSpent(ctx, s)
			if trouble = errors.Join(trouble, err); spent {
				a.pin.nonce, a.pin.due = s.Nonce, true
				continue
			}
		}
		o, wanted := a.wanted(s, is)
		if !wanted {
			continue
		}
		late, err := a.isLate(s, o.intent.IsZero(), ask)
		if over := (overError{}); errors.As(err, &over) {
			return nil, err
		}
		if late || err != nil {
			trouble = errors.Join(trouble, err) // the next turn ends late intents
			continue
		}
		orders = append(orders, o)
	}
	orders, err = a.measured(ctx, orders)
	if over := (overError{}); errors.As(err, &over) {
		return nil, err
	}
	trouble = errors.Join(trouble, err)
	orders, err = a.priced(ctx, orders, stalled)
	return orders, errors.Join(trouble, err)
}

// priced returns the orders that can be priced now, with their offers.
func (a *actor) priced(ctx context.Context, orders []order, stalled *uint64) (priced []order, trouble error) {
	var back []standing
	given := map[uint64]bool{}
	for _, o := range orders {
		if given[o.Nonce] {
			continue
		}
		err := a.price(ctx, &o)
		if err == nil {
			err = a.affordable(ctx, &o)
		}
		if err == nil {
			priced = append(priced, o)
			continue
		}
		var unsigned []standing
		if commands.IsRefusal(err) || isShort(err) {
			unsigned = a.unsignedFrom(o)
		}
		for _, one := range unsigned {
			given[one.Nonce], back = true, append(back, one)
		}
		if faster := o.faster && (isAtCeiling(err) || isShort(err)); len(unsigned) == 0 && !faster {
			trouble = errors.Join(trouble, fmt.Errorf("nonce %d: %w", o.Nonce, err), a.refusedMore(ctx, o, err, stalled))
		}
	}
	return priced, errors.Join(trouble, a.release(ctx, reasonMarket, back))
}

// wanted returns the order of a nonce, if it has one. A no-op replaces an intent that is to
// end without effect, and an attempt that its intent does not know.
func (a *actor) wanted(s standing, stalled bool) (o order, wanted bool) {
	it := s.job.intent.State
	placed := a.placed(s)
	o = order{standing: s}
	if s.stale || s.halted != "" || s.Landed != nil || s.IsFree() || s.seen() {
		return o, false
	}
	if len(s.Attempts) == 0 {
		if s.Filled {
			return o, true
		}
		o.intent = s.id
		return o, placed && it.Stop.Reason == "" && it.End == nil
	}
	last := s.Attempts[len(s.Attempts)-1]
	stalled = stalled || s.gone[last.Hash] // it will never be mined
	switch {
	case len(s.Attempts) >= lane.AttemptsMax, placed && it.End != nil:
		return o, false
	case last.Intent.IsZero():
		return o, stalled && a.known(s, last.Hash)
	case !placed || it.ToNoOp():
		return o, true
	case !a.known(s, last.Hash):
		return o, false // its intent has to record it first
	}
	o.intent, o.faster = s.id, !stalled
	return o, len(s.Attempts) < lane.BumpsMax && (stalled || it.Floor.Int().Gt(last.Fee.MaxFee.Int()))
}

// seen reports whether the chain has used the nonce, as far as delivery knows.
func (s standing) seen() bool {
	return slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return s.txs[m.Hash].Verdict != tx.StatusAbsent })
}

// stalled returns the first waiting nonce if it has made no progress for Settings.Stall and
// is the nonce that the chain wants.
func (a *actor) stalled(ctx context.Context) (*uint64, error) {
	now := a.Now()
	for _, s := range a.slots() {
		if len(s.Attempts) == 0 || s.Landed != nil || s.seen() {
			continue
		}
		if a.front.nonce != s.Nonce || a.front.since.IsZero() {
			a.front = front{nonce: s.Nonce, since: now, block: max(a.newest.Number, a.tip().Number)}
		}
		since := a.front.since
		if made := s.Attempts[len(s.Attempts)-1].At; made.After(since) {
			since = made
		}
		if now.Sub(since) < a.Settings.Stall {
			return nil, nil
		}
		if err := a.resting(); err != nil {
			return nil, err
		}
		a.front.since = now // until the chain is asked again
		w, err := a.wants(ctx)
		if err != nil || w.Nonce != s.Nonce {
			return nil, err
		}
		a.front.grew = a.front.block != 0 && w.Block.Number > a.front.block
		a.front.block = w.Block.Number
		a.stalls = true
		a.Log.Warn("nonce stalls", "lane", lane.Stream(a.ID), "nonce", s.Nonce, "attempts", len(s.Attempts), "for", now.Sub(since).Round(time.Second))
		return &s.Nonce, nil
	}
	return nil, nil
}

// price sets the offer of an order. It outbids only attempts that node pools may have. An
// attempt counts as unsent if delivery does not have it and will not get it here. A former
// holder of the lane may still hand it over; then one of the two is mined, and delivery
// follows both.
func (a *actor) price(ctx context.Context, o *order) (err error) {
	it := o.job.intent.State
	t := a.termsOf(it, max(o.gas, it.Requested.Request.Gas.Limit))
	if o.intent.IsZero() {
		t = fee.Terms{NoOp: true, Legacy: t.Legacy, Gas: a.noOpGas(o.Nonce), Sender: t.Sender, Sponsored: t.Sponsored && a.sponsorsNoOp(o.standing)}
	}
	if o.plain {
		t.Floor = chain.Price{}
	}
	o.unsent = nil
	for _, made := range o.Attempts {
		unsent := a.unsent(o.standing, made)
		if unsent {
			o.unsent = append(o.unsent, made.Hash)
		}
		t = t.After(made.Fee, unsent)
	}
	o.offer, err = a.Fees.Offer(ctx, t)
	return err
}

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
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// claimMax bounds how many intents are claimed at once.
const claimMax = 500

// take claims as many intents as there is room for, and reserves nonces for those intents
// that may be signed.
func (a *actor) take(ctx context.Context) error {
	defer a.tellPart()
	lighter := a.held.State.InFlight() < a.weighed
	if !a.claim && !lighter || !a.held.State.Known && !a.OnlyAsked {
		return nil
	}
	if err := a.isPaused(); err != nil {
		return err
	}
	a.weighed = 0
	room, err := a.room(ctx)
	a.roomy, a.loaded = room, a.held.State.InFlight()
	if err != nil || room == 0 {
		a.tellPart()
		if a.called {
			a.News.wakeOthers(a.box) // the call was for this lane alone
		}
		return err
	}
	defer a.leave()
	a.waitFor = nil
	parked := a.parked()
	claimed, trouble := a.claimShare(ctx, room)
	turn, err := a.inTurn(ctx, append(parked, claimed...))
	trouble = errors.Join(trouble, err, a.prepare(ctx, turn), a.fit(ctx, room))
	if err = a.lookFirst(ctx); err == nil {
		err = a.admit(ctx)
	}
	if vain := len(a.ready) == 0; a.called || !vain {
		a.calls.answered(vain, a.Now(), a.Settings.Poll)
	}
	if a.weighed == 0 {
		a.widen(room, claimed)
	} else {
		a.wider, a.sweep = 0, sweep{} // the queue's head may be claimed once less gas is in flight
	}
	if over := (overError{}); errors.As(err, &over) {
		return err
	}
	return errors.Join(trouble, err, a.reserve(ctx))
}

// holder names the claimant: this run of this process and this lane, since it was opened or
// the claimed set was last discarded. Claims under an older name count as another
// claimant's, and make later intents of their ordering groups wait until they lapse.
// Otherwise these would get lower nonces.
func (a *actor) holder() string {
	return fmt.Sprintf("%s %s %d.%d", a.Holder, lane.Stream(a.ID), a.token, a.claims)
}

func (a *actor) giveBack(ctx context.Context, ids []chain.IntentID) error {
	if len(ids) == 0 {
		return nil
	}
	err := a.Queue.Return(ctx, a.holder(), ids)
	if err != nil {
		a.claims++
	}
	return err
}

// fail ends an intent that can never be executed. A refusal means that it has already ended
// otherwise.
func (a *actor) fail(ctx context.Context, j *job, why error) error {
	reason := intent.Refused
	if errors.Is(why, ErrReverts) {
		reason = intent.Simulation
	}
	return unlessRefused(a.tellIntent(ctx, j, intent.Fail{Reason: reason, Detail: why.Error(), At: a.Now()}))
}

// unlessRefused returns nil for a refusal, and other errors unchanged.
func unlessRefused(err error) error {
	if commands.IsRefusal(err) {
		return nil
	}
	return err
}

// reserve hands nonces to the jobs in a.ready, in order. An intent behind another of its
// ordering group needs a higher nonce. It waits until no lower nonce is free, and returns
// to the queue if the intent before it gets none.
func (a *actor) reserve(ctx context.Context) error {
	var now, later []chain.IntentID
	free := a.freeBelow()
	for _, j := range a.ready {
		if !j.behind.IsZero() && (free || !a.follows(j.behind, now)) {
			later = append(later, j.id)
		} else {
			now = append(now, j.id)
		}
	}
	if len(now) > 0 {
		err := a.command(ctx, lane.Reserve{Token: a.token, Intents: now, Budget: a.Settings.Budget, At: a.Now()})
		if err != nil {
			return err
		}
		a.crash("lane.reserved")
	}
	a.slots() // begins their jobs
	for _, j := range a.ready {
		if _, holds := a.held.State.Held(j.id); !holds && !slices.Contains(later, j.id) {
			later = append(later, j.id)
		}
	}
	a.ready = nil
	return a.giveBack(ctx, later)
}

// freeBelow reports whether a nonce is free below an intent's nonce.
func (a *actor) freeBelow() bool {
	free := false
	for slot := range a.held.State.Slots() {
		if free && !slot.Intent.IsZero() {
			return true
		}
		free = free || slot.IsFree()
	}
	return false
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
			a.front = front{s.Nonce, now}
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
		a.stalls = true
		a.Log.Warn("nonce stalls", "lane", lane.Stream(a.ID), "nonce", s.Nonce, "attempts", len(s.Attempts), "for", now.Sub(since).Round(time.Second))
		return &s.Nonce, nil
	}
	return nil, nil
}

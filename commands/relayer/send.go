package relayer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// claimMax bounds how many intents are claimed at once.
const claimMax = 500

// take claims as many intents as there is room for, and reserves nonces for those that
// may be signed for.
func (a *actor) take(ctx context.Context) error {
	defer a.tellPart()
	lighter := a.held.State.InFlight() < a.weighed
	if !a.claim && !lighter || !a.held.State.Known {
		return nil
	}
	a.weighed = 0
	room, err := a.room(ctx)
	a.roomy, a.loaded = room, a.held.State.InFlight()
	if err != nil || room == 0 {
		a.tellPart()
		if a.called {
			a.News.wakeOthers(a.box) // it was for this lane alone
		}
		return err
	}
	defer a.leave()
	parked := a.parked()
	claimed, trouble := a.claimShare(ctx, room)
	turn, err := a.inTurn(ctx, append(parked, claimed...))
	trouble = errors.Join(trouble, err, a.prepare(ctx, turn), a.fit(ctx, room))
	err = a.admit(ctx)
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

// holder is who claims: this run of this process, for this lane, since it opened it, or
// since it lost track of what it had claimed. What nobody carries on is another's claim
// from then on, so it keeps those behind it in its row waiting until it lapses: else they
// would get lower nonces.
func (a *actor) holder() string {
	return fmt.Sprintf("%s %s %d.%d", a.Holder, lane.Stream(a.ID), a.token, a.claims)
}

// prepare reads what was claimed, and finds out how much gas it needs, and whether it
// may pay what that costs. What nodes are slow to say that of keeps its claim, and its row
// waits, until they have said it. What cannot be done ends here, before it has a nonce; what
// cannot be found out is given back, and with it what stands behind it in its row, unless
// that was so before: see [actor.putOff]. What may not pay enough yet is given back too if
// it is in a row; else it is looked at again when its claim lapses, and keeps nobody from
// being claimed meanwhile. Behind one that has got a nonce of another lane, of which the
// queue has not heard yet, its row waits until it has: in which lane it goes on is not known
// here.
func (a *actor) prepare(ctx context.Context, claimed []intent.Claimed) error {
	jobs := make([]*job, len(claimed))
	back, elsewhere, parked := make([]bool, len(claimed)), make([]bool, len(claimed)), make([]bool, len(claimed))
	why := make([]error, len(claimed))
	var untimely error
	if slices.ContainsFunc(claimed, func(c intent.Claimed) bool { return c.Deadline != 0 }) {
		untimely = a.timely(a.askOnce(ctx))
	}
	_ = commands.Each(len(claimed), a.Settings.AtOnce, func(i int) (err error) {
		if _, holds := a.held.State.Held(claimed[i].ID); holds {
			return nil
		}
		jobs[i], err = a.inspect(ctx, claimed[i], untimely)
		why[i] = err
		return nil
	})
	a.measures.await(ctx, idsOf(slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j == nil })))
	trouble := commands.Each(len(claimed), a.Settings.AtOnce, func(i int) (err error) {
		if err = why[i]; err == nil && jobs[i] != nil {
			jobs[i], err = a.quoted(ctx, jobs[i])
		}
		back[i] = err != nil
		switch {
		case errors.Is(err, errMeasuring):
			a.park(claimed[i])
			back[i], parked[i], err = false, true, nil
		case errors.Is(err, errCrowded):
			err = nil
		case errors.Is(err, fee.ErrMarket):
			back[i], err = claimed[i].Row != intent.Row{}, nil
		case errors.Is(err, errElsewhere):
			back[i], elsewhere[i], err = false, claimed[i].Row != intent.Row{}, nil
		}
		why[i] = err
		return err
	})
	var ids []chain.IntentID
	kept := map[intent.Row]bool{} // rows of which one was given back, or is somewhere else
	for i, c := range claimed {
		if parked[i] {
			kept[c.Row], jobs[i] = true, nil
			continue
		}
		if elsewhere[i] || back[i] && a.putOff(c.ID, c.From) {
			kept[c.Row], a.leaves = true, a.leaves || c.Row != intent.Row{}
			if why[i] != nil {
				a.waits(why[i])
			}
			continue
		}
		if back[i] || c.Row != (intent.Row{}) && kept[c.Row] {
			kept[c.Row], jobs[i] = true, nil
			ids = append(ids, c.ID)
		}
	}
	a.ready = slices.DeleteFunc(jobs, func(j *job) bool { return j == nil })
	return errors.Join(trouble, a.giveBack(ctx, ids))
}

// errElsewhere means that an intent has a nonce of another lane.
var errElsewhere = errors.New("it has a nonce of another lane")

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

// inspect is the job of an intent that was claimed; nil when it is not to be done. Untimely
// is why the chain's time is not known, by which deadlines are judged.
func (a *actor) inspect(ctx context.Context, c intent.Claimed, untimely error) (*job, error) {
	j := &job{id: c.ID, behind: c.Behind}
	var err error
	if j.intent, err = a.Intents.Load(ctx, intent.Stream(c.ID)); err != nil {
		return nil, err
	}
	it := j.intent.State
	request := it.Requested.Request
	if it.Requested.ID.IsZero() || it.End != nil || !a.mayCarryOut(request) {
		return nil, nil
	}
	if p := it.Place; p != nil {
		if *p != a.placeOf(p.Nonce) {
			return nil, errElsewhere
		}
		return nil, nil
	}
	if request.Deadline != 0 {
		if now := a.time(); now >= request.Deadline {
			return nil, unlessRefused(a.tellIntent(ctx, j, intent.Expire{Now: now, At: a.Now()}))
		}
		if untimely != nil {
			return nil, untimely
		}
	}
	if err := a.measure(ctx, j.id, request); err != nil {
		return nil, err
	}
	return j, nil
}

// fail ends an intent that can never be carried out. If that is refused it has come out
// otherwise.
func (a *actor) fail(ctx context.Context, j *job, why error) error {
	reason := intent.Refused
	if errors.Is(why, ErrReverts) {
		reason = intent.Simulation
	}
	return unlessRefused(a.tellIntent(ctx, j, intent.Fail{Reason: reason, Detail: why.Error(), At: a.Now()}))
}

// unlessRefused leaves errors that are bad luck.
func unlessRefused(err error) error {
	if commands.IsRefusal(err) {
		return nil
	}
	return err
}

// reserve hands nonces to what is ready, in its order. What follows others of its row
// has to get a higher one than they: it waits until none below them is free, and goes back
// if what it stands behind gets none.
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
	a.slots() // which begins their jobs
	for _, j := range a.ready {
		if _, holds := a.held.State.Held(j.id); !holds && !slices.Contains(later, j.id) {
			later = append(later, j.id)
		}
	}
	a.ready = nil
	return a.giveBack(ctx, later)
}

// freeBelow reports whether a nonce is free below one that an intent holds.
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

// orders are what all nonces want, by rising nonce. An intent that may not pay what gas
// has come to cost since it got its nonce gives that back, with those behind it in its row,
// and keeps no others waiting; unless one of these is signed for. One that has stalled, and
// may offer no more, is to give way.
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
			trouble = errors.Join(trouble, err) // what is late is ended by the next turn
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

// priced are the orders that can be offered for now, with their offers.
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

// wanted is what is to be signed for a nonce, if anything is. A no-op takes the place of
// what is to end without effect, and of what its intent knows nothing of.
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
	stalled = stalled || s.gone[last.Hash] // it will never land
	switch {
	case len(s.Attempts) >= lane.AttemptsMax, placed && it.End != nil:
		return o, false
	case last.Intent.IsZero():
		return o, stalled && a.known(s, last.Hash)
	case !placed || it.ToNoOp():
		return o, true
	case !a.known(s, last.Hash):
		return o, false // it is told first
	}
	o.intent, o.faster = s.id, !stalled
	return o, len(s.Attempts) < lane.BumpsMax && (stalled || it.Floor.Int().Gt(last.Fee.MaxFee.Int()))
}

// seen reports whether the chain has used the nonce, as far as delivery knows.
func (s standing) seen() bool {
	return slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return s.txs[m.Hash].Verdict != tx.StatusAbsent })
}

// stalled is the first nonce that waits for the chain, if it has made no progress for so
// long that it is to be signed for again: the chain wants this very one.
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
		a.front.since = now // before it is asked again
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

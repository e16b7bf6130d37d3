package relayer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
)

// Clients share a lane, and each may set a ceiling of its own on fees. When gas becomes
// more expensive than that ceiling, the transaction cannot be mined, its fee cannot be
// raised, and all later nonces wait. The intent then gives way: a no-op replaces the
// transaction, with a fee up to the operator's ceiling. Once the no-op is final, the intent
// waits for another nonce. Until then any attempt at the nonce may still be mined.

// patience divides [Settings.Stall]: an intent at the front of the lane gives way after
// this fraction of it.
const patience = 4

// pin is the front of the lane, if no block can include its last attempt at the current
// price.
type pin struct {
	nonce uint64
	since time.Time
	due   bool // it has stalled, and may offer no more
}

// giveWay makes the front of the lane give way if it cannot be mined, and all such intents
// behind it in the same turn. An intent keeps its nonce if later intents of its ordering
// group are signed: they would be mined before it.
func (a *actor) giveWay(ctx context.Context) error {
	front, waits := a.waiting()
	if !waits || !a.mayGiveWay(front) {
		a.pin = pin{}
		return nil
	}
	pinned, err := a.pinned(ctx, front)
	if err != nil {
		return err
	}
	now := a.Now()
	if a.pin.nonce != front.Nonce || a.pin.since.IsZero() {
		a.pin = pin{nonce: front.Nonce, since: now, due: a.pin.due && a.pin.nonce == front.Nonce}
	}
	switch {
	case a.pin.due:
	case !pinned:
		a.pin = pin{}
		return nil
	case now.Sub(a.pin.since) < a.Settings.Stall/patience:
		return nil
	}
	noop := order{standing: front}
	if err := a.price(ctx, &noop); err != nil {
		return fmt.Errorf("nonce %d may offer no more, and a no-op cannot take its place: %w", front.Nonce, err)
	}
	a.pin = pin{}
	return a.allGiveWay(ctx, front)
}

// refusedMore records that the front has stalled and that its fee cannot be raised.
func (a *actor) refusedMore(s standing, o order, why error, stalled *uint64) {
	refused := errors.Is(why, fee.ErrMarket) || errors.Is(why, fee.ErrCeiling)
	if refused && !o.intent.IsZero() && stalled != nil && *stalled == s.Nonce {
		a.pin.nonce, a.pin.due = s.Nonce, true
	}
}

// waiting returns the lowest signed nonce that no block contains.
func (a *actor) waiting() (standing, bool) {
	for _, s := range a.slots() {
		if len(s.Attempts) > 0 && s.Landed == nil && !s.seen() {
			return s, true
		}
	}
	return standing{}, false
}

// mayGiveWay reports whether the intent at a nonce has a fee ceiling of its own, is signed,
// is not mined, and has no later intent of its ordering group signed.
func (a *actor) mayGiveWay(s standing) bool {
	it := s.job.intent.State
	live := len(s.Attempts) > 0 && s.Landed == nil && !s.seen() && !s.stale && s.halted == ""
	return live && a.placed(s) && it.End == nil && it.Receipt == nil && !it.ToNoOp() && ceiled(it) &&
		!s.Attempts[len(s.Attempts)-1].Intent.IsZero() && !a.isFollowed(s)
}

// ceiled reports whether an intent sets a fee ceiling.
func ceiled(it intent.State) bool {
	gas := it.Requested.Request.Gas
	return !gas.MaxFee.IsZero() || !gas.MaxPriorityFee.IsZero()
}

// isFollowed reports whether a later intent of the same ordering group is signed, or may
// be.
func (a *actor) isFollowed(s standing) bool {
	row := rowOf(s.job)
	if row.Order == "" {
		return false
	}
	for _, other := range a.slots() {
		if other.Nonce > s.Nonce && !other.id.IsZero() && (other.unread || rowOf(other.job) == row && len(other.Attempts) > 0) {
			return true
		}
	}
	return false
}

func rowOf(j *job) intent.Row { return j.intent.State.Requested.Request.Waiting(0).Row }

// pinned reports whether the last attempt offers less than gas costs now, and the intent's
// own ceiling allows no replacement.
func (a *actor) pinned(ctx context.Context, s standing) (bool, error) {
	offered := s.Attempts[len(s.Attempts)-1].Fee
	_, err := a.Fees.Offer(ctx, fee.Terms{NoOp: true, Legacy: a.Format.Type == 0, Sender: a.ID.Sender, MaxFee: offered.MaxFee})
	if !errors.Is(err, fee.ErrMarket) {
		return false, unlessRefused(err)
	}
	bump := order{standing: s, intent: s.id}
	err = a.price(ctx, &bump)
	return errors.Is(err, fee.ErrMarket) || errors.Is(err, fee.ErrCeiling), unlessRefused(err)
}

// allGiveWay makes the front give way, and all pinned intents behind it. Unsigned intents
// of their ordering groups return their nonces first.
func (a *actor) allGiveWay(ctx context.Context, front standing) error {
	var ways, unsigned []standing
	for _, s := range a.slots() {
		if !a.mayGiveWay(s) {
			continue
		}
		pinned, err := a.pinned(ctx, s)
		if err != nil {
			return err
		}
		if !pinned && s.Nonce != front.Nonce {
			continue
		}
		ways = append(ways, s)
		unsigned = append(unsigned, a.unsignedBehind(s)...)
	}
	if err := a.release(ctx, reasonMarket, unsigned); err != nil {
		return err // one of its row may still be signed for behind it
	}
	return each(a, ways, func(s standing) error {
		a.Log.Warn("nonce gives way", "lane", lane.Stream(a.ID), "nonce", s.Nonce, "intent", s.id)
		return unlessRefused(a.tellIntent(ctx, s.job, intent.GiveWay{
			Assignment: s.job.intent.State.Assignment, Detail: reasonMarket, At: a.Now(),
		}))
	})
}

// unsignedBehind returns the nonces of later intents of the same ordering group. The caller
// has checked that none of them is signed.
func (a *actor) unsignedBehind(s standing) (behind []standing) {
	row := rowOf(s.job)
	for _, other := range a.slots() {
		if row.Order != "" && other.Nonce > s.Nonce && !other.id.IsZero() && rowOf(other.job) == row {
			behind = append(behind, other)
		}
	}
	return behind
}

// gaveWay reports whether an attempt is the no-op that replaces the intent at the nonce.
func (a *actor) gaveWay(s standing, made lane.Made) bool {
	return made.Intent.IsZero() && a.placed(s) && s.job.intent.State.GivesWay()
}

// filled requeues an intent once the no-op at its nonce is final. Before that the intent
// does not record the no-op's block: after a reorg another attempt may be mined.
func (a *actor) filled(ctx context.Context, s standing, made lane.Made, d delivered) error {
	it := s.job.intent.State
	if it.Receipt != nil {
		now, err := s.instead(it.Receipt.Block)
		if err != nil {
			return err
		}
		if err := a.tellIntent(ctx, s.job, intent.LoseBlock{Was: it.Receipt.Block, Now: now, At: a.Now()}); err != nil {
			return err
		}
	}
	if !d.Sealed {
		return nil
	}
	return a.tellIntent(ctx, s.job, intent.Requeue{
		Assignment: it.Assignment, Token: uint64(a.token), At: a.Now(),
		Evidence: intent.Evidence{Kind: intent.Filled, Block: d.Block, Hash: made.Hash},
	})
}

// mayBeFollowed reports whether later intents of the same ordering group may get nonces
// while this intent is in flight. They may not if it could give way: they would be mined
// before it.
func (a *actor) mayBeFollowed(ctx context.Context, it intent.State) bool {
	if it.GivesWay() {
		return false
	}
	if !ceiled(it) {
		return true
	}
	t := a.termsOf(it)
	t.Followed = true
	_, err := a.Fees.Offer(ctx, t)
	return err == nil
}

// landed reports whether a block contains the intent's own transaction, not a no-op.
func (s standing) landed() bool {
	made, _, executed := s.executed()
	return executed && !made.Intent.IsZero()
}

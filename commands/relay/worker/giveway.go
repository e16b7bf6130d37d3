package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// Clients share a lane, and each may limit how an intent pays its fee: by a fee ceiling of
// its own, by a fee token, or by asking for the sponsor. When gas becomes more expensive
// than the ceiling, or the payer has no funds, the transaction cannot be mined, and all
// later nonces wait. The same happens if no node takes the transaction at all. The intent
// then gives way: a no-op replaces the transaction, with a fee up to the operator's
// ceiling. Once the no-op is final, the intent waits for another nonce. Until then any
// attempt at the nonce may still be mined.

// patience divides [Settings.Stall]: an intent at the front of the lane gives way after
// this fraction of it.
const patience = 4

// pin is the front of the lane, if no block can include its last attempt.
type pin struct {
	nonce uint64
	since time.Time
	due   bool // it has stalled, and its fee cannot be raised
}

// giveWay makes the front of the lane give way if it cannot be mined. In the same turn it
// makes all pinned intents behind it give way. So do intents of the same client that pay no
// better or that no node takes.
func (a *actor) giveWay(ctx context.Context) error {
	front, waits := a.waiting()
	if !waits || !a.isReplaceable(front) {
		a.pin = pin{}
		return nil
	}
	stuck, err := a.isStuck(ctx, front)
	if err != nil {
		return err
	}
	now := a.Now()
	if a.pin.nonce != front.Nonce || a.pin.since.IsZero() {
		a.pin = pin{nonce: front.Nonce, since: now, due: a.pin.due && a.pin.nonce == front.Nonce}
	}
	switch {
	case a.pin.due:
	case !stuck:
		a.pin = pin{}
		return nil
	case now.Sub(a.pin.since) < a.Settings.Stall/patience:
		return nil
	}
	noop := order{standing: front}
	if err := a.price(ctx, &noop); err != nil {
		return fmt.Errorf("nonce %d has reached its ceiling, and a no-op cannot replace it: %w", front.Nonce, err)
	}
	a.pin = pin{}
	return a.allGiveWay(ctx, front)
}

// isStuck reports whether the front gives way once this has lasted a while.
func (a *actor) isStuck(ctx context.Context, s standing) (bool, error) {
	if a.mayBePinned(s) {
		if pinned, err := a.pinned(ctx, s); pinned || err != nil {
			return pinned, err
		}
	}
	if a.followers(s) > 0 {
		return false, nil
	}
	if rejected, err := a.isRejected(ctx, s); rejected || err != nil {
		return rejected, err
	}
	return a.isPassedOver(ctx, s)
}

// refusedMore records that the front has stalled and that its fee cannot be raised.
func (a *actor) refusedMore(ctx context.Context, o order, why error, stalled *uint64) error {
	if o.intent.IsZero() || len(o.Attempts) == 0 || stalled == nil || *stalled != o.Nonce || !isAtCeiling(why) && !isShort(why) {
		return nil
	}
	due, err := isAtCeiling(why) && a.mayBePinned(o.standing), error(nil)
	if !due {
		due, err = a.isHopeless(ctx, o.standing, why)
	}
	if due {
		a.pin.nonce, a.pin.due = o.Nonce, true
	}
	return err
}

// isAtCeiling reports whether an offer was refused because of a ceiling.
func isAtCeiling(err error) bool {
	return errors.Is(err, fee.ErrMarket) || errors.Is(err, fee.ErrCeiling)
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

// mayBePinned reports whether the intent at a nonce limits how it pays, can be replaced, and
// has no later intent of its ordering group signed.
func (a *actor) mayBePinned(s standing) bool {
	return a.isReplaceable(s) && a.limits(s.job) && a.followers(s) == 0
}

// last returns the last attempt at a nonce that has attempts.
func (s standing) last() lane.Made { return s.Attempts[len(s.Attempts)-1] }

// isLimited reports whether an intent sets a fee ceiling, a fee token or the sponsor.
func isLimited(g intent.Gas) bool {
	return !g.MaxFee.IsZero() || !g.MaxPriorityFee.IsZero() || elsewhere(g)
}

// limits reports whether an intent limits how it pays, or its gas does: the more gas, the
// less a unit of it may cost within fee.max-per-transaction. Gas that is unknown does.
func (a *actor) limits(j *job) bool {
	wish := j.intent.State.Requested.Request.Gas
	gas := max(j.gas, wish.Limit)
	return isLimited(wish) || gas == 0 || a.Fees.Bounds(gas)
}

// followers counts the later intents of the same ordering group that are signed, or may be.
// An intent that limits how it pays has none, see [actor.follows], except intents signed by
// an earlier release.
func (a *actor) followers(s standing) (n int) {
	row := rowOf(s.job)
	if row.Order == "" {
		return 0
	}
	for _, other := range a.slots() {
		if other.Nonce > s.Nonce && !other.id.IsZero() && (other.unread || rowOf(other.job) == row && len(other.Attempts) > 0) {
			n++
		}
	}
	return n
}

// knowsRows reports whether all open nonces have been read, so that it is known which
// ordering groups their intents belong to.
func (a *actor) knowsRows() bool {
	return !slices.ContainsFunc(a.slots(), func(s standing) bool { return s.unread && !s.id.IsZero() })
}

func rowOf(j *job) intent.Row { return j.intent.State.Requested.Request.Waiting(0).Row }

// pinned reports whether no block can include the last attempt: its payer has no funds, or
// it offers less than gas costs now and the intent's own ceiling allows no replacement.
func (a *actor) pinned(ctx context.Context, s standing) (bool, error) {
	if s.isUnpaid() {
		return true, nil
	}
	_, err := a.Fees.Offer(ctx, fee.Terms{NoOp: true, Legacy: a.Format.Type == 0, Sender: a.ID.Sender, MaxFee: s.last().Fee.MaxFee})
	if !errors.Is(err, fee.ErrMarket) {
		return false, unlessRefused(err)
	}
	return a.isAtMost(ctx, s)
}

// isAtMost reports whether the intent's ceilings allow no replacement of its last attempt.
func (a *actor) isAtMost(ctx context.Context, s standing) (bool, error) {
	bump := order{standing: s, intent: s.id}
	err := a.price(ctx, &bump)
	return isAtCeiling(err), unlessRefused(err)
}

// isUnpaid reports whether nodes refuse the intent's last attempt because the balance in
// its fee token, or the sponsor's, does not cover the fee. The guard watches the signer's
// usual balance only.
func (s standing) isUnpaid() bool {
	last := s.last()
	return !last.Intent.IsZero() && s.txs[last.Hash].lacks && elsewhere(s.job.intent.State.Requested.Request.Gas)
}

// paysNoBetter reports whether another intent of the front's client has no better chance.
// It pays by the same means as a front without funds, or it offers no more and may not
// offer more.
func (a *actor) paysNoBetter(ctx context.Context, s, front standing) (bool, error) {
	r, first := s.job.intent.State.Requested.Request, front.job.intent.State.Requested.Request
	if r.Client != first.Client || !a.mayBePinned(front) {
		return false, nil
	}
	if front.isUnpaid() {
		return sameMeans(r.Gas, first.Gas), nil
	}
	offer, least := s.last().Fee, front.last().Fee
	if offer.MaxFee.Int().Gt(least.MaxFee.Int()) || offer.MaxPriorityFee.Int().Gt(least.MaxPriorityFee.Int()) {
		return false, nil
	}
	return a.isAtMost(ctx, s)
}

// sameMeans reports whether two intents pay their fees from the same balance.
func sameMeans(x, y intent.Gas) bool {
	if x.FeeToken == nil || y.FeeToken == nil {
		return x.FeeToken == y.FeeToken && x.Sponsored == y.Sponsored
	}
	return *x.FeeToken == *y.FeeToken && x.Sponsored == y.Sponsored
}

// allGiveWay makes the front give way, with all pinned intents and with intents of its
// client that pay no better or that no node takes. Unsigned intents of their ordering
// groups return their nonces first. An intent fails instead if later intents of its group
// are signed.
func (a *actor) allGiveWay(ctx context.Context, front standing) error {
	var ways, ends, unsigned []standing
	for _, s := range a.slots() {
		if !a.isReplaceable(s) {
			continue
		}
		if s.Nonce != front.Nonce {
			if stuck, err := a.isStuckBehind(ctx, s, front); err != nil {
				return err
			} else if !stuck {
				continue
			}
		}
		if a.followers(s) > 0 {
			if a.knowsRows() {
				ends = append(ends, s)
			}
			continue
		}
		ways = append(ways, s)
		unsigned = append(unsigned, a.unsignedBehind(s)...)
	}
	if err := a.release(ctx, reasonMarket, unsigned); err != nil {
		return err // a later intent of the group may still be signed
	}
	if len(ways)+len(ends) > 0 {
		a.penalize(front)
	}
	trouble := each(a, ends, func(s standing) error {
		a.Log.Warn("an intent ends that is not mined, as later ones of its ordering group are signed", "lane", lane.Stream(a.ID), "nonce", s.Nonce, "intent", s.id)
		return a.end(ctx, s, front)
	})
	return errors.Join(trouble, each(a, ways, func(s standing) error {
		a.Log.Warn("a no-op takes an intent's nonce", "lane", lane.Stream(a.ID), "nonce", s.Nonce, "intent", s.id)
		return unlessRefused(a.tellIntent(ctx, s.job, intent.GiveWay{
			Assignment: s.job.intent.State.Assignment, Detail: a.whyWay(s, front), At: a.Now(),
		}))
	}))
}

// isStuckBehind reports whether an intent behind a front that gives way does so too.
func (a *actor) isStuckBehind(ctx context.Context, s, front standing) (stuck bool, err error) {
	if a.mayBePinned(s) {
		stuck, err = a.pinned(ctx, s)
		if !stuck && err == nil {
			stuck, err = a.paysNoBetter(ctx, s, front)
		}
	}
	if stuck || err != nil || s.job.intent.State.Requested.Request.Client != front.job.intent.State.Requested.Request.Client {
		return stuck, err
	}
	if stuck, err = a.isRejected(ctx, s); stuck || err != nil {
		return stuck, err
	}
	if a.isLeftOutWith(s, front) {
		return true, nil
	}
	return a.isLikeFront(ctx, s, front)
}

// whyWay returns why an intent gives way with a front, in the words of the nodes if none has
// taken it.
func (a *actor) whyWay(s, front standing) string {
	refusal := s.txs[s.last().Hash].refusal
	switch {
	case a.isLeftOut(s):
		return s.whyLeftOut()
	case s.isUntaken() && refusal.Class != "":
		return fmt.Sprintf("no node accepts it: %s", refusal.Message)
	case a.isLeftOut(front):
		return reasonBeside
	}
	return reasonMarket
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

// noop reports whether an attempt at a nonce is a no-op.
func (a *actor) noop(s standing, hash chain.Hash) bool {
	return slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return m.Hash == hash && m.Intent.IsZero() })
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
// before this intent is mined. They may not if it could give way, or has done so before: they
// would be mined before it.
func (a *actor) mayBeFollowed(j *job) bool {
	it := j.intent.State
	return !it.GivesWay() && len(it.GaveWay) == 0 && !a.limits(j)
}

// landed reports whether a block contains the intent's own transaction, not a no-op.
func (s standing) landed() bool {
	made, _, executed := s.executed()
	return executed && !made.Intent.IsZero()
}

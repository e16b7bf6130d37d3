package worker

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// All nodes may refuse an intent's transaction for a reason that is not on the list of
// permanent refusals. For example, its fee is above a node's own limit, or a node words a
// lack of gas in a new way. If no node has ever taken it, it gives way too, whether or not
// the intent limits how it pays. Raising the fee comes first if nodes say that the fee is
// too low.

// untakenMost is the number of attempts at a nonce that no node takes, while nodes do not
// blame the transaction itself. Each is made once the nonce has stalled.
const untakenMost = 4

// blames are the causes of refusals that lie with the transaction, and not with the node or
// with lower nonces. An empty cause is a refusal for any other reason.
var blames = []tx.Cause{"", tx.Funds, tx.FeeCap, tx.KeyMissing}

// isReplaceable reports whether an intent's transaction may be in no block yet, and a no-op
// may take its place.
func (a *actor) isReplaceable(s standing) bool {
	it := s.job.intent.State
	live := len(s.Attempts) > 0 && s.Landed == nil && !s.seen() && !s.stale && s.halted == ""
	return live && a.placed(s) && it.End == nil && it.Receipt == nil && !it.ToNoOp() && !s.last().Intent.IsZero()
}

// isUntaken reports whether no node has ever taken an attempt at the nonce.
func (s standing) isUntaken() bool {
	return !slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return s.isTaken(m.Hash) })
}

// isRejected reports whether no node has ever taken an attempt, and nodes refuse the last
// attempt for a reason that lies with it, or with an HTTP status for its content. Lack of funds does not count while the signer
// could not pay for an ordinary intent either.
func (a *actor) isRejected(ctx context.Context, s standing) (bool, error) {
	refusal := s.txs[s.last().Hash].refusal
	if a.isContent(s) {
		return true, nil
	}
	if !s.isUntaken() || refusal.Class != tx.Retry || !slices.Contains(blames, refusal.Cause) {
		return false, nil
	}
	if a.lacksUsual(s) {
		return a.paysOrdinary(ctx)
	}
	return true, nil
}

// contentStatuses are the HTTP statuses with which a node, or a proxy before it, refuses a request
// for its content. The value is true if the status can mean nothing else. The others may also mean
// that it refuses every request, for example because a credential has expired.
var contentStatuses = map[int]bool{
	http.StatusRequestEntityTooLarge: true,
	http.StatusRequestURITooLong:     true,
	http.StatusBadRequest:            false,
	http.StatusForbidden:             false,
	http.StatusUnprocessableEntity:   false,
}

// contentStatus returns the HTTP status with which an endpoint has refused a transaction for its
// content; 0 if none has. The endpoint may have the bytes all the same.
func contentStatus(answers []tx.Answer) int {
	for _, answer := range answers {
		if _, is := contentStatuses[answer.Code]; is && answer.Class == tx.Unknown {
			return answer.Code
		}
	}
	return 0
}

// isContent reports whether no node has ever taken an attempt, and the last one was refused with an
// HTTP status for its content. If the status has another meaning too, and nodes refuse another
// client's transaction in the lane with it, neither transaction is to blame.
func (a *actor) isContent(s standing) bool {
	status := s.txs[s.last().Hash].httpStatus
	if status == 0 || !s.isUntaken() {
		return false
	}
	client := s.job.intent.State.Requested.Request.Client
	return contentStatuses[status] || !slices.ContainsFunc(a.slots(), func(other standing) bool {
		return len(other.Attempts) > 0 && other.job.intent.State.Requested.Request.Client != client &&
			other.txs[other.last().Hash].httpStatus == status && other.isUntaken()
	})
}

// lacksUsual reports whether nodes refuse the last attempt as the signer's usual balance
// does not cover it.
func (a *actor) lacksUsual(s standing) bool {
	return s.txs[s.last().Hash].lacks && !elsewhere(s.job.intent.State.Requested.Request.Gas)
}

// paysOrdinary reports whether the signer's last known balance covers an ordinary intent.
func (a *actor) paysOrdinary(ctx context.Context) (bool, error) {
	if a.Guard == nil {
		return true, nil
	}
	balance, seen := a.Guard.Balance(a.Chain, a.ID.Sender)
	if !seen {
		return false, nil
	}
	offer, err := a.Fees.Offer(ctx, fee.Terms{NoOp: true, Legacy: a.Format.Type == 0, Sender: a.ID.Sender})
	if err != nil {
		return false, unlessRefused(err)
	}
	return balance.Cmp(chain.Amount(offer.Fee.MaxFee).Times(ordinaryGas)) >= 0, nil
}

// isSpent reports whether another attempt at a stalled nonce is useless: there are
// lane.BumpsMax attempts, or blocks leave it out, or no node has ever taken one, and nodes blame
// the transaction or have refused untakenMost attempts. It is false while the signer cannot pay
// for an ordinary intent either.
func (a *actor) isSpent(ctx context.Context, s standing) (bool, error) {
	if !a.isReplaceable(s) {
		return false, nil
	}
	if a.lacksUsual(s) {
		if pays, err := a.paysOrdinary(ctx); err != nil || !pays {
			return false, err
		}
	}
	if a.isLeftOut(s) {
		return true, nil
	}
	if last := s.txs[s.last().Hash]; len(last.Recorded) == 0 {
		return false, nil
	}
	if len(s.Attempts) >= lane.BumpsMax {
		return true, nil
	}
	if s.isUntaken() && len(s.Attempts) >= untakenMost {
		return true, nil
	}
	if rejected, err := a.isRejected(ctx, s); rejected || err != nil {
		return rejected, err
	}
	return a.isPassedOver(ctx, s)
}

// isHopeless reports whether an intent whose fee cannot be raised gives way although it
// does not limit how it pays: no node has ever taken it, or the signer cannot pay for it.
func (a *actor) isHopeless(ctx context.Context, s standing, why error) (bool, error) {
	if !isShort(why) && !a.lacksUsual(s) {
		return s.isUntaken() && len(s.txs[s.last().Hash].Recorded) > 0, nil
	}
	return a.paysOrdinary(ctx)
}

// end fails an intent that no node takes or that blocks leave out, and that cannot wait for
// another nonce, as later intents of its ordering group are signed: these would be mined before
// it.
func (a *actor) end(ctx context.Context, s, front standing) error {
	detail := fmt.Sprintf("no node has accepted it: %s", s.txs[s.last().Hash].refusal.Message)
	if !s.isUntaken() {
		detail = a.whyWay(s, front)
	}
	return unlessRefused(a.tellIntent(ctx, s.job, intent.Fail{Reason: intent.Refused, Detail: detail, At: a.Now()}))
}

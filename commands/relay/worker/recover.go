package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Reasons for giving nonces back.
const (
	reasonElsewhere = "the intent cannot be carried out here"
	reasonStopped   = "the intent was stopped"
	reasonMarket    = "the intent's ceiling is below the gas price"
	reasonGuard     = "the guard does not allow to sign the intent now"
	reasonGas       = "no node has estimated the intent's gas"
	reasonYield     = "an operator wants the nonce filled"
)

// place assigns reserved nonces to their intents, and releases unsigned nonces that are not
// wanted. While the intent of a lower nonce is unread, intents of ordering groups wait: it
// may precede them in their group. Intents of groups that an earlier holder placed are
// assigned again with this holder's token. Otherwise that holder, unaware of its loss,
// could release a nonce that is about to be signed.
func (a *actor) place(ctx context.Context) error {
	var rows [][]standing // each in order; if one intent goes elsewhere, the rest of its group does too
	at, away := map[intent.Row]int{}, map[intent.Row]bool{}
	var back, taken []standing
	unread := false
	for _, s := range a.slots() {
		it := s.job.intent.State
		request := it.Requested.Request
		switch row := request.Waiting(0).Row; {
		case s.id.IsZero() || len(s.Attempts) > 0:
		case s.stale:
			unread = true
		case a.placed(s) && it.Stop.Reason == "":
			if row.Order != "" && it.Token < uint64(a.token) {
				taken = append(taken, s)
			}
		case it.Place != nil && !a.placed(s) && it.End == nil, row.Order != "" && away[row]:
			away[row], back = true, append(back, s)
		case a.placed(s), it.Place != nil, it.End != nil, it.Requested.ID.IsZero(), !a.mayCarryOut(request):
			back = append(back, s)
		case row.Order != "" && unread:
		case row.Order != "" && has(at, row):
			rows[at[row]] = append(rows[at[row]], s)
		default:
			at[row] = len(rows)
			rows = append(rows, []standing{s})
		}
	}
	trouble := each(a, taken, func(s standing) error {
		return unlessRefused(a.tellPlace(ctx, s, s.job.intent.State.Assignment))
	})
	refused := make([][]standing, len(rows))
	trouble = errors.Join(trouble, commands.Each(len(rows), a.Settings.AtOnce, func(i int) (err error) {
		refused[i], err = a.assign(ctx, rows[i])
		return err
	}))
	if len(rows) > 0 {
		a.crash("intents.assigned")
	}
	return errors.Join(trouble, a.release(ctx, reasonElsewhere, append(back, slices.Concat(refused...)...)), a.yield(ctx))
}

// yield releases the nonces that operators want filled, each with the nonces of later
// intents of its ordering group. It releases none if one of these is signed, because the
// group would be mined in another order.
func (a *actor) yield(ctx context.Context) error {
	var back []standing
	given := map[uint64]bool{}
	for _, s := range a.slots() {
		if s.stale || len(s.Attempts) > 0 || !a.placed(s) || !s.job.intent.State.Yields() {
			continue
		}
		for _, one := range a.unsignedFrom(order{standing: s, intent: s.id}) {
			if !given[one.Nonce] {
				given[one.Nonce], back = true, append(back, one)
			}
		}
	}
	return a.release(ctx, reasonYield, back)
}

// assign assigns nonces to the intents of an ordering group, one after the other. An intent
// that has another place belongs to another lane, and so do the intents after it.
func (a *actor) assign(ctx context.Context, row []standing) (refused []standing, err error) {
	for i, s := range row {
		err := a.tellPlace(ctx, s, s.job.intent.State.Assignment+1)
		switch {
		case errors.Is(err, intent.ErrAssigned):
			return append(refused, row[i:]...), nil
		case commands.IsRefusal(err):
			refused = append(refused, s)
		case err != nil:
			return refused, err
		}
	}
	return refused, nil
}

// tellPlace assigns a nonce to an intent, as its next assignment or again as its current
// one.
func (a *actor) tellPlace(ctx context.Context, s standing, assignment int) error {
	return a.tellIntent(ctx, s.job, intent.Assign{Assignment: assignment, Place: a.placeOf(s.Nonce), Token: uint64(a.token), At: a.Now()})
}

// release takes nonces back; why is the reason for intents that are still to be executed.
// An intent placed at its nonce records the loss before the lane does, because an attempt
// outside its intent's place is never handed over. Within an ordering group the last nonce
// goes first. If one intent keeps its nonce, the earlier intents of its group keep theirs.
func (a *actor) release(ctx context.Context, why string, back []standing) error {
	var elsewhere, stopped, later []chain.IntentID
	var trouble error
	kept := map[intent.Row]bool{}
	for _, s := range slices.Backward(back) {
		row := s.job.intent.State.Requested.Request.Waiting(0).Row
		switch {
		case !a.placed(s):
			elsewhere = append(elsewhere, s.id)
			continue
		case row.Order != "" && kept[row]:
			continue
		}
		goesOn := s.job.intent.State.Stop.Reason == ""
		gone := intent.Requeue{
			Assignment: s.job.intent.State.Assignment, Token: uint64(a.token), Evidence: intent.Evidence{Kind: intent.Released}, At: a.Now(),
		}
		if err := a.tellIntent(ctx, s.job, gone); err != nil {
			kept[row], trouble = true, errors.Join(trouble, err)
			continue
		}
		if goesOn {
			later = append(later, s.id)
		} else {
			stopped = append(stopped, s.id)
		}
	}
	for _, given := range []struct {
		ids    []chain.IntentID
		reason string
	}{{elsewhere, reasonElsewhere}, {stopped, reasonStopped}, {later, why}} {
		for some := range slices.Chunk(given.ids, lane.BatchMax) {
			if err := a.command(ctx, lane.Release{Token: a.token, Intents: some, Reason: given.reason, At: a.Now()}); err != nil {
				return errors.Join(trouble, err)
			}
		}
	}
	return trouble
}

// fill fills holes without an intent with no-ops.
func (a *actor) fill(ctx context.Context) error {
	var nonces []uint64
	for _, hole := range a.held.State.Holes() {
		if hole.Intent.IsZero() {
			nonces = append(nonces, hole.Nonce)
		}
	}
	for some := range slices.Chunk(nonces, lane.BatchMax) {
		if err := a.command(ctx, lane.Fill{Token: a.token, Nonces: some, At: a.Now()}); err != nil {
			return err
		}
	}
	return nil
}

// record records attempts with their intents.
func (a *actor) record(ctx context.Context) error {
	var untold []standing
	for _, s := range a.slots() {
		if !s.stale && a.placed(s) && slices.ContainsFunc(s.Attempts, func(m lane.Made) bool { return !a.known(s, m.Hash) }) {
			untold = append(untold, s)
		}
	}
	if len(untold) == 0 {
		return nil
	}
	err := each(a, untold, func(s standing) error {
		for i, made := range s.Attempts {
			kind := intent.Bump
			switch {
			case a.known(s, made.Hash):
				continue
			case made.Intent.IsZero():
				kind = intent.NoOp
			case i == 0:
				kind = intent.First
			}
			err := a.tellIntent(ctx, s.job, intent.Attempt{Assignment: s.job.intent.State.Assignment, Kind: kind, Hash: made.Hash, Fee: made.Fee, At: a.Now()})
			// A refusal means that the intent has lost the place: a no-op will use the
			// nonce.
			if unlessRefused(err) != nil {
				return err
			}
		}
		return nil
	})
	a.crash("intents.told")
	return err
}

// unsent reports whether delivery does not have an attempt and will not get it here: its
// intent does not know it or is to end, or its bytes are gone.
func (a *actor) unsent(s standing, made lane.Made) bool {
	stopped := s.job.intent.State.ToNoOp()
	return s.txs[made.Hash].Status == tx.StatusAbsent && (!a.known(s, made.Hash) || stopped && !made.Intent.IsZero() || s.gone[made.Hash])
}

// hand gives delivery the recorded attempts that it does not have. It never signs again.
// For an intent that is to end it hands over only no-ops: the cancel may precede any
// hand-over of the other attempts.
func (a *actor) hand(ctx context.Context) error {
	var of []standing
	var missing []chain.Hash
	var raws [][]byte
	var clients []string
	var trouble error
	ask := a.askOnce(ctx)
	for _, s := range a.slots() {
		if _, _, executed := s.executed(); s.stale || s.halted != "" || executed {
			continue
		}
		for _, made := range s.Attempts {
			if s.txs[made.Hash].Status != tx.StatusAbsent || a.unsent(s, made) {
				continue
			}
			if late, err := a.isLate(s, made.Intent.IsZero(), ask); late || err != nil {
				trouble = errors.Join(trouble, err)
				continue
			}
			raw, err := a.bytes(ctx, made.Hash)
			switch {
			case errors.Is(err, payload.ErrGone) || errors.Is(err, payload.ErrSealed):
				s.job.gone[made.Hash] = true
				trouble = errors.Join(trouble, fmt.Errorf("attempt %s at nonce %d is lost, a new attempt follows: %w", made.Hash, s.Nonce, err))
				continue
			case err != nil:
				return errors.Join(trouble, fmt.Errorf("attempt %s: %w", made.Hash, err))
			}
			of, missing, raws = append(of, s), append(missing, made.Hash), append(raws, raw)
			clients = append(clients, s.clientOf(made))
		}
	}
	if len(missing) == 0 {
		return trouble
	}
	answers, err := a.Delivery.Batch(ctx, a.Chain, raws, func(i int) string { return clients[i] }, eventlog.Meta{Actor: lane.Actor})
	if err != nil {
		return errors.Join(trouble, fmt.Errorf("hand %d attempts to delivery: %w", len(raws), err))
	}
	a.crash("attempts.handed")
	for i, answer := range answers {
		if answer.Err != nil {
			trouble = errors.Join(trouble, fmt.Errorf("delivery of %s: %w", missing[i], answer.Err))
			continue
		}
		of[i].txs[missing[i]] = delivered{State: answer.State}
		delete(a.fresh, missing[i])
	}
	return trouble
}

// clientOf returns the client that owns an attempt in delivery: the client of its intent. A
// no-op has no client.
func (s standing) clientOf(made lane.Made) string {
	if made.Intent.IsZero() {
		return ""
	}
	return s.job.intent.State.Requested.Request.Client
}

// bytes returns the bytes of an attempt: just signed here, or from the vault.
func (a *actor) bytes(ctx context.Context, hash chain.Hash) ([]byte, error) {
	if raw, ok := a.fresh[hash]; ok {
		return raw, nil
	}
	return a.Vault.Bytes(ctx, payload.Ref{Chain: a.Chain, Hash: hash})
}

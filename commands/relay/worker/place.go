package worker

import (
	"context"
	"errors"
	"slices"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// Reasons for giving nonces back.
const (
	reasonElsewhere = "the intent cannot be carried out here"
	reasonStopped   = "the intent was stopped"
	reasonMarket    = "the intent's ceiling is below the gas price"
	reasonGuard     = "the guard does not allow to sign the intent now"
	reasonGas       = "no node has estimated the intent's gas"
	reasonYield     = "an operator wants the nonce filled"
	reasonLeftOut   = "blocks leave it out, though it offers enough and a node has taken it"
	reasonBeside    = "blocks leave out its client's intents before it"
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

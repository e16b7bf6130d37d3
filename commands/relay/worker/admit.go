package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
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

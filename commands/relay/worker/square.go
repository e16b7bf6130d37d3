package worker

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
)

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

package worker

import (
	"context"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

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

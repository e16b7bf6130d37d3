package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// look asks the chain for the nonce it wants: before the first nonce is handed out, and
// then once per Settings.Look, as others may use the key. An OnlyAsked lane without open nonces
// asks only before it hands out nonces: see [actor.lookFirst].
func (a *actor) look(ctx context.Context) error {
	if a.OnlyAsked && a.held.State.Open() == 0 {
		return nil
	}
	if a.held.State.Known && a.Now().Sub(a.looked) < a.Settings.Look {
		return nil
	}
	_, err := a.wants(ctx)
	return err
}

// wants asks the chain for the nonce it wants, and advances the lane if that is ahead.
// Nonces that the cursor skipped and the chain still wants are reclaimed.
func (a *actor) wants(ctx context.Context) (lane.Witness, error) {
	if a.silent = a.resting(); a.silent != nil {
		return lane.Witness{}, a.silent
	}
	asked := a.Now()
	var w lane.Witness
	a.silent = a.inTurns(func(node Chain) (err error) {
		if w, err = node.Next(ctx, a.ID, false); err != nil {
			err = fmt.Errorf("the chain's next nonce: %w", err)
		}
		return err
	})
	if a.silent != nil {
		return w, a.silent
	}
	a.newest, a.heard, a.silent = w.Block, asked, nil
	if !a.held.State.Known || w.Nonce > a.held.State.Next {
		if err := a.command(ctx, lane.Advance{Token: a.token, Witness: w, At: a.Now()}); err != nil {
			return w, err
		}
	}
	if gap := a.held.State.Gap(w.Nonce); gap.First < gap.End {
		count := min(gap.End-gap.First, lane.ReserveMax)
		if err := a.command(ctx, lane.Reclaim{Token: a.token, Count: count, Witness: w, At: a.Now()}); err != nil {
			return w, err
		}
	}
	a.looked = a.Now()
	a.witness, a.drift = w, a.held.State.Drift(w)
	return w, nil
}

// report reports the lane's state after a turn. Nonces that the chain used before their
// attempts were known here stop counting as drift once they are.
func (a *actor) report(began time.Time, trouble error) {
	if a.drift > 0 {
		a.drift = min(a.drift, max(a.held.State.Drift(a.witness), 0))
	}
	text := ""
	if trouble != nil {
		text = trouble.Error()
		text = text[:min(len(text), toldMax)]
	}
	a.turned(Turn{
		Lane: a.ID, State: a.held.State, Budget: a.Settings.Budget, Drift: a.drift,
		Stalled: a.stalls, Troubled: trouble != nil, Trouble: text, Took: a.Now().Sub(began),
	})
	a.stalls = false
}

package relayer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/lane"
)

// poll reads the chain's blocks now and then.
func (a *actor) poll(ctx context.Context) error {
	now := a.Now()
	if now.Sub(a.polled) < a.Settings.Poll {
		return nil
	}
	blocks, err := a.Blocks.Blocks(ctx, a.Chain)
	if err != nil {
		return fmt.Errorf("blocks: %w", err)
	}
	a.blocks, a.polled = blocks, now
	a.bearOut()
	if len(blocks) == 0 || a.said.Number > blocks[len(blocks)-1].Number {
		return nil
	}
	for _, s := range a.slots() {
		if _, d, ok := s.executed(); ok && d.Sealed && !a.isSteady(s) {
			w, err := a.Node.Next(ctx, a.ID, true)
			if err != nil {
				return fmt.Errorf("the final block: %w", err)
			}
			a.said = w.Block
			a.bearOut()
			return nil
		}
	}
	return nil
}

// bearOut takes a block for final that nodes have said is, when it stands among those that
// are known here: until then these may be of a fork that it has ruled out.
func (a *actor) bearOut() {
	if slices.ContainsFunc(a.blocks, func(b chain.Block) bool { return b.Hash == a.said.Hash }) {
		a.final = max(a.final, a.said.Number)
	}
}

// look asks the chain which nonce it wants: before the first is handed out, and now and
// then, for others may use the key.
func (a *actor) look(ctx context.Context) error {
	if a.held.State.Known && a.Now().Sub(a.looked) < a.Settings.Look {
		return nil
	}
	_, err := a.wants(ctx)
	return err
}

// wants asks the chain which nonce it wants, and takes the lane there if that is ahead.
// What the cursor had jumped over and the chain wants all the same is opened again.
func (a *actor) wants(ctx context.Context) (lane.Witness, error) {
	w, err := a.Node.Next(ctx, a.ID, false)
	if err != nil {
		return w, fmt.Errorf("the nonce that the chain wants: %w", err)
	}
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

// report tells how the lane stands after a turn. What the chain had used before we knew
// it is no drift any more once we do.
func (a *actor) report(began time.Time) {
	if a.drift > 0 {
		a.drift = min(a.drift, max(a.held.State.Drift(a.witness), 0))
	}
	a.turned(Turn{
		Lane: a.ID, State: a.held.State, Budget: a.Settings.Budget, Drift: a.drift,
		Stalled: a.stalls, Took: a.Now().Sub(began),
	})
	a.stalls = false
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// poll reads the chain's blocks, at most once per Settings.Poll.
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
	a.hear()
	a.bearOut()
	if len(blocks) == 0 {
		return nil
	}
	unsteady := slices.DeleteFunc(a.slots(), func(s standing) bool {
		_, d, ok := s.executed()
		return !ok || !d.Sealed || s.stale || s.halted != "" || a.isSteady(s)
	})
	if len(unsteady) > 0 && a.said.Number <= blocks[len(blocks)-1].Number {
		final, err := a.reads().Final(ctx)
		if err != nil {
			return fmt.Errorf("the final block: %w", err)
		}
		a.said = final
		a.bearOut()
	}
	return a.prove(ctx, unsteady)
}

// provesMax bounds the blocks asked for in one poll.
const provesMax = 64

// prove asks nodes for announced blocks that lie below all remembered blocks, once the
// final block is above them. The remembered blocks may begin after a fork, which no other
// check would find. An announced block that is not canonical is revoked.
func (a *actor) prove(ctx context.Context, unsteady []standing) (trouble error) {
	found := map[uint64]chain.Block{}
	canonical := func(of *job, number uint64) (chain.Block, error) {
		if b, known := found[number]; known {
			return b, nil
		}
		b, err := a.at(ctx, of, number)
		if err != nil {
			return b, fmt.Errorf("block %d: %w", number, err)
		}
		found[number] = b
		return b, nil
	}
	for _, s := range unsteady {
		told := s.job.intent.State.Told
		last := len(told) - 1
		if !a.placed(s) || last < 1 || told[last].Number >= a.blocks[0].Number || told[last].Number > a.said.Number {
			continue
		}
		if len(found) >= provesMax {
			return trouble // the next poll continues
		}
		at, err := canonical(s.job, told[last].Number)
		if err != nil {
			trouble = errors.Join(trouble, err) // another client may have calls left
			continue
		}
		if at.Hash == told[last].Hash {
			s.job.proven = at.Hash
			continue
		}
		for _, b := range told[1:] {
			if at, err = canonical(s.job, b.Number); err != nil {
				trouble = errors.Join(trouble, err)
				break
			}
			if at.Hash != b.Hash {
				if err := a.tellIntent(ctx, s.job, intent.LoseBlock{Was: b, Now: at, At: a.Now()}); unlessRefused(err) != nil {
					return err
				}
				break
			}
		}
	}
	return trouble
}

// bearOut accepts the nodes' final block once it is among the remembered blocks. Until then
// these may be on a fork that the final block has ruled out.
func (a *actor) bearOut() {
	if slices.ContainsFunc(a.blocks, func(b chain.Block) bool { return b.Hash == a.said.Hash }) {
		a.final = max(a.final, a.said.Number)
	}
}

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
	a.turned(Turn{
		Lane: a.ID, State: a.held.State, Budget: a.Settings.Budget, Drift: a.drift,
		Stalled: a.stalls, Troubled: trouble != nil, Took: a.Now().Sub(began),
	})
	a.stalls = false
}

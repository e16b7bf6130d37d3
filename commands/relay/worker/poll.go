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

// sight is what a lane knows of the chain.
type sight struct {
	polled time.Time
	blocks []chain.Block // as of polled
	said   chain.Block   // final block according to nodes, when last asked for
	final  uint64        // number of the highest block in blocks known to be final
	met    bool          // blocks have held a block that nodes reported since the lane was opened

	looked  time.Time    // last time the chain was asked for the nonce it wants
	witness lane.Witness // last answer
	drift   int64        // as of witness, see [Turn]
	newest  chain.Block  // newest block of the chain, as last reported
	heard   time.Time    // time of that report
	silent  error        // error of the nodes in this turn
}

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

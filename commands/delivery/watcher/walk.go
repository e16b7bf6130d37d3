package watcher

import (
	"context"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// block is a block with its contents.
type block struct {
	chain.Block
	chain.Contents
}

// approach reads the blocks between the tip and a head far above it, stretch by stretch.
// They may hold transactions that are not looked at otherwise, such as canceled ones. A gap
// beyond gapMax is left to walk, which skips it.
func (r *run) approach(ctx context.Context, head chain.Block) error {
	for tip := r.tip(); !tip.IsZero(); tip = r.tip() {
		switch {
		case head.Number < tip.Number+aheadMin:
			r.ahead = nil
			return nil
		case head.Number-tip.Number > gapMax:
			return nil
		}
		r.readAhead(ctx, tip.Number+1, min(head.Number, tip.Number+stretch))
		if head.Number <= tip.Number+stretch {
			return nil
		}
		next, _, err := r.Node.BlockAt(ctx, tip.Number+stretch)
		if err != nil {
			return fmt.Errorf("block %d: %w", tip.Number+stretch, err)
		}
		if err := r.take(ctx, next); err != nil {
			return err
		}
		if r.tip().Number <= tip.Number {
			return nil
		}
	}
	return nil
}

// readAhead reads blocks of these numbers concurrently: one after the other they could take
// longer than a distant chain takes to make them. A block stays until the tip has passed
// it, so that an error with one block costs no other. A block that could not be read, or
// was replaced since, is read by its hash during the walk.
func (r *run) readAhead(ctx context.Context, from, to uint64) {
	have := map[uint64]bool{}
	for hash, b := range r.ahead {
		if b.Number < from {
			delete(r.ahead, hash)
		}
		have[b.Number] = true
	}
	if r.ahead == nil {
		r.ahead = map[chain.Hash]block{}
	}
	found := make([]block, to-from+1)
	//nolint:errcheck // it never fails: what is missing is read later
	commands.Each(len(found), aheadMax, func(i int) error {
		if number := from + uint64(i); !have[number] { //nolint:gosec // small
			if b, contents, err := r.Node.BlockWhole(ctx, number); err == nil {
				found[i] = block{b, contents}
			}
		}
		return nil
	})
	for _, b := range found {
		if !b.IsZero() {
			r.ahead[b.Hash] = b
		}
	}
}

// byHash returns a block that was read ahead, or reads it.
func (r *run) byHash(ctx context.Context, hash chain.Hash) (block, error) {
	if b, ok := r.ahead[hash]; ok {
		return b, nil
	}
	b, contents, err := r.Node.BlockByHash(ctx, hash)
	return block{b, contents}, err
}

// walk goes from a head by parent hashes to a known block. It returns the new blocks,
// lowest first, and the number of known blocks that stay. No new blocks means that there is
// nothing to process: the head lags, or is still doubted.
func (r *run) walk(ctx context.Context, head chain.Block) (fresh []block, base int, err error) {
	known := make(map[chain.Hash]int, len(r.blocks))
	for i, b := range r.blocks {
		known[b.Hash] = i
	}
	if _, ok := known[head.Hash]; ok {
		return nil, 0, nil // an older block of the same chain: the node lags
	}
	next := head.Hash
	for len(fresh) < walkMax {
		b, err := r.byHash(ctx, next)
		if err != nil {
			return nil, 0, fmt.Errorf("block %s: %w", next, err)
		}
		// A number that does not follow its parent's is false. If it were far too high,
		// every true head after it would look like a lagging node.
		if n := len(fresh); n > 0 && fresh[n-1].Number != b.Number+1 {
			return nil, 0, fmt.Errorf("block %s says that it is %d, and its child %d", b.Hash, b.Number, fresh[n-1].Number)
		}
		fresh = append(fresh, b)
		if i, ok := known[b.Parent]; ok {
			if parent := r.blocks[i]; b.Number != parent.Number+1 {
				return nil, 0, fmt.Errorf("block %s says that it is %d, and its parent is %d", b.Hash, b.Number, parent.Number)
			}
			slices.Reverse(fresh)
			if r.doubts(head, i+1) {
				fresh = nil
			}
			return fresh, i + 1, nil
		}
		if len(r.blocks) == 0 || b.Number == 0 {
			break // nothing to meet: watching begins here
		}
		next = b.Parent
	}
	return r.restart(ctx, head, fresh)
}

// doubts holds a fork back until it is certain: a lower head is a lagging node, and a head
// of equal height must be seen twice.
func (r *run) doubts(head chain.Block, base int) bool {
	tip := r.tip()
	if base == len(r.blocks) {
		r.doubted = chain.Hash{}
		return false // no fork
	}
	if head.Number < tip.Number || head.Number == tip.Number && r.doubted != head.Hash {
		r.doubted = head.Hash
		return true
	}
	return false
}

// restart handles a head that does not meet the known blocks within walkMax: at the very
// first step, or after a long absence. Events in between are found later: open transactions
// when next due, verdicts when their block is final, and watched rows in rounds.
func (r *run) restart(ctx context.Context, head chain.Block, fresh []block) ([]block, int, error) {
	tip := r.tip()
	if len(r.blocks) == 0 {
		return fresh[:1], 0, nil // fresh[0] is the head
	}
	if head.Number <= tip.Number {
		// A fork deeper than walkMax, or another chain: only the block at that number
		// decides.
		at, _, err := r.Node.BlockAt(ctx, r.blocks[0].Number)
		if err != nil {
			return nil, 0, err
		}
		if at.Hash == r.blocks[0].Hash {
			return nil, 0, fmt.Errorf("head %d does not descend from block %d within %d blocks", head.Number, tip.Number, walkMax)
		}
	}
	r.Log.Warn("the watcher restarts at the head", "chain", r.Chain, "head", head.Number, "known", tip.Number)
	slices.Reverse(fresh)
	r.round = round{}
	base, err := r.stillCanonical(ctx)
	if err != nil {
		return nil, 0, err
	}
	return fresh, base, nil
}

// stillCanonical counts the known blocks, from the lowest, that the chain still has.
func (r *run) stillCanonical(ctx context.Context) (int, error) {
	low, high := 0, len(r.blocks) // blocks below low are canonical, blocks from high up are not
	for low < high {
		mid := (low + high) / 2
		at, _, err := r.Node.BlockAt(ctx, r.blocks[mid].Number)
		if err != nil {
			return 0, fmt.Errorf("block %d: %w", r.blocks[mid].Number, err)
		}
		if at.Hash == r.blocks[mid].Hash {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}

package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// asked caches blocks of a chain during a verification.
type asked struct {
	Node
	tip    chain.Block
	blocks map[uint64]chain.Block // read recently
}

// blocksMax limits the number of cached blocks.
const blocksMax = 4096

// verdicts compares sealed verdicts with the chain: P11. It skips recorded violations of
// finality, which operators already know about.
func (r *run) verdicts(ctx context.Context, some []folded) error {
	byBlock := map[chain.ID]map[uint64][]folded{}
	for _, f := range some {
		if f.broken || f.sealed == nil || f.now.Violated || r.Nodes[f.Chain] == nil {
			continue
		}
		if byBlock[f.Chain] == nil {
			byBlock[f.Chain] = map[uint64][]folded{}
		}
		number := f.sealed.Block.Number
		byBlock[f.Chain][number] = append(byBlock[f.Chain][number], f)
	}
	for id, blocks := range byBlock {
		if err := r.blocks(ctx, id, blocks); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			// The store can be verified without the chain.
			r.report.Unchecked = append(r.report.Unchecked, fmt.Sprintf("chain %s: %v", id, err))
			delete(r.Nodes, id)
		}
	}
	return nil
}

func (r *run) blocks(ctx context.Context, id chain.ID, blocks map[uint64][]folded) error {
	c, err := r.chain(ctx, id)
	if err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(blocks)) {
		if err := r.block(ctx, id, c, number, blocks[number]); err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
	}
	return nil
}

// chain returns a chain with its head as of the first request.
func (r *run) chain(ctx context.Context, id chain.ID) (*asked, error) {
	if c := r.asked[id]; c != nil {
		return c, nil
	}
	c := &asked{Node: r.Nodes[id], blocks: map[uint64]chain.Block{}}
	var err error
	if c.tip, err = c.Head(ctx); err != nil {
		return nil, err
	}
	r.asked[id] = c
	return c, nil
}

// block compares the verdicts on one block with the chain.
func (r *run) block(ctx context.Context, id chain.ID, c *asked, number uint64, sealed []folded) error {
	if r.report.Chains == nil {
		r.report.Chains = map[string]Chain{}
	}
	sum := r.report.Chains[id.String()]
	sum.Head = c.tip
	untrue := func(f folded, format string, args ...any) {
		sum.False++
		r.broken(promises.Violation{Promise: promises.P11, Stream: f.stream, Evidence: fmt.Sprintf(format, args...)})
	}
	here, err := c.at(ctx, number)
	if err != nil {
		return err
	}
	var executed []folded
	var hashes []chain.Hash
	for _, f := range sealed {
		sum.Verdicts++
		switch {
		case f.sealed.Block.Hash != here.Hash:
			untrue(f, "sealed as %s on block %d, %s, but the chain has %s there", f.sealed.Verdict, number, f.sealed.Block.Hash, here.Hash)
		case f.sealed.Verdict == tx.StatusExecuted:
			executed, hashes = append(executed, f), append(hashes, f.Hash)
		default:
			why, err := c.absent(ctx, f)
			if err != nil {
				return err
			}
			if why != "" {
				untrue(f, "%s", why)
			}
		}
	}
	if len(hashes) > 0 {
		mined, err := c.mined(ctx, here, hashes)
		if err != nil {
			return err
		}
		for _, f := range executed {
			if !mined[f.Hash] {
				untrue(f, "sealed as executed in block %d, but that block does not contain it", number)
			}
		}
	}
	r.report.Chains[id.String()] = sum
	return nil
}

// mined reports which transactions are in a block. A node returns an error if one of them is in
// another block; each is then requested by itself.
func (c *asked) mined(ctx context.Context, b chain.Block, hashes []chain.Hash) (map[chain.Hash]bool, error) {
	mined := make(map[chain.Hash]bool, len(hashes))
	if receipts, err := c.Receipts(ctx, b, hashes); err == nil {
		for hash := range receipts {
			mined[hash] = true
		}
		return mined, nil
	}
	for _, hash := range hashes {
		receipt, err := c.FindReceipt(ctx, hash, c.tip)
		if err != nil {
			return nil, err
		}
		mined[hash] = receipt != nil && receipt.Block.Hash == b.Hash
	}
	return mined, nil
}

// at returns the chain's block at a height.
func (c *asked) at(ctx context.Context, number uint64) (chain.Block, error) {
	if b, ok := c.blocks[number]; ok {
		return b, nil
	}
	b, _, err := c.BlockAt(ctx, number)
	if err != nil {
		return b, err
	}
	if len(c.blocks) >= blocksMax {
		clear(c.blocks)
	}
	c.blocks[number] = b
	return b, nil
}

// absent returns the reason why a verdict based on a missing receipt is wrong; empty if it is
// right.
func (c *asked) absent(ctx context.Context, f folded) (string, error) {
	receipt, err := c.FindReceipt(ctx, f.Hash, c.tip)
	switch {
	case err != nil:
		return "", err
	case receipt != nil:
		return fmt.Sprintf("sealed as %s, but it is in block %d, %s", f.sealed.Verdict, receipt.Block.Number, receipt.Block.Hash), nil
	case f.sealed.Verdict != tx.StatusStale:
		return "", nil
	}
	a := f.now.Accepted
	next, err := c.Nonces(ctx, c.tip, []chain.Sequence{{Chain: a.Chain, Sender: a.Sender, Key: a.NonceKey}})
	if err == nil && next[0] <= a.Nonce {
		return fmt.Sprintf("sealed as stale, but the chain's next nonce is %d, and its own is %d", next[0], a.Nonce), nil
	}
	return "", err
}

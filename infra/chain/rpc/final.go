package rpc

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Final returns the newest block that can no longer leave the chain. It is the node's finalized
// block, or the block with the configured number of confirmations below a tip that was read
// (the block itself counts as the first), at least the genesis. It is one endpoint's claim;
// [Reader.ShownFinal] asks the others.
func (r *Reader) Final(ctx context.Context, tip chain.Block) (chain.Block, error) {
	which := any("finalized")
	if n := r.pool.config.Confirmations; n > 0 {
		depth := min(n-1, tip.Number)
		if below, ok := r.ancestor(tip, depth); ok {
			return below, nil
		}
		which = quantity(tip.Number - depth)
	}
	final, by, err := hedgedBy(ctx, r.pool, func(ctx context.Context, e *endpoint) (chain.Block, error) {
		block, _, err := r.block(ctx, e, which)
		return block, err
	})
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.final = finalWord{final, by}
	}
	return final, err
}

// finalWord is a final block and the endpoint that reported it last.
type finalWord struct {
	block chain.Block
	by    *endpoint
}

// ancestor follows parents from a block down by depth, if all blocks between were read
// recently.
func (r *Reader) ancestor(of chain.Block, depth uint64) (chain.Block, bool) {
	for ; depth > 0; depth-- {
		parent, ok := r.recall(of.Parent)
		if !ok {
			return chain.Block{}, false
		}
		of = parent.block
	}
	return of, true
}

// ShownFinal confirms that a block is final by more than one endpoint, so that verdicts that
// rest on it can be sealed. Agree endpoints must call it final, or have the configured number
// of confirmations on top of it. An error means that nothing is known yet.
func (r *Reader) ShownFinal(ctx context.Context, final chain.Block) error {
	what := fmt.Sprintf("final block %d %s", final.Number, final.Hash)
	c := claim{ofFinality, what, what, r.sameFinal(final)}
	r.mu.Lock()
	told := r.final
	r.mu.Unlock()
	if told.block == final {
		return r.pool.borneOut(ctx, told.by, c)
	}
	return r.pool.allBearOut(ctx, c)
}

// sameFinal asks an endpoint whether a block is final. An endpoint that has not reached it is
// waited for. An endpoint with another block at its height is on another branch.
func (r *Reader) sameFinal(final chain.Block) func(context.Context, *endpoint) say {
	tag, height := "finalized", final.Number
	if n := r.pool.config.Confirmations; n > 0 && final.Number > 0 { // no tip is below the genesis
		tag, height = "latest", final.Number+n-1
	}
	return func(ctx context.Context, other *endpoint) say {
		// In one request: an endpoint that answers only now and then need not answer twice in a
		// row.
		replies, err := r.ask(ctx, other, blockCall(tag, false), blockCall(quantity(final.Number), false))
		if err != nil {
			return r.sayOf(ctx, other, final, err)
		}
		top, err := r.seen(ctx, other, tag, false, replies[0])
		switch {
		case err != nil:
			return r.sayOf(ctx, other, final, err)
		case top.block.Number < height:
			return saysLater
		case top.block.Hash == final.Hash:
			return saysYes
		}
		switch at, err := r.seen(ctx, other, quantity(final.Number), false, replies[1]); {
		case err != nil:
			return saysLater
		case at.block.Hash != final.Hash:
			return saysNo
		}
		return saysYes
	}
}

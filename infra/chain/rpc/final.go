package rpc

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Final is the newest block that can no longer leave the chain: the one the node
// calls finalized, or the one that has as many confirmations as configured below a
// tip that was read (the block itself counts as the first), at least the genesis.
// That is one endpoint's word; [Reader.ShownFinal] asks the others.
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

// finalWord is a final block and who told of it last.
type finalWord struct {
	block chain.Block
	by    *endpoint
}

// ancestor goes from a block by parents to the one so far below it, as long as all
// between them were read lately.
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

// ShownFinal makes sure that what rests on a final block can be sealed: that it is not one
// endpoint's word alone that no block up to this one can leave the chain. As many as
// have to agree say the same, or have so many blocks on top of it as are configured. An
// error says that nothing is known yet.
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

// sameFinal asks an endpoint whether a block is final. One that has not come so far is
// waited for; one with another block at its height is on another branch.
func (r *Reader) sameFinal(final chain.Block) func(context.Context, *endpoint) say {
	tag, height := "finalized", final.Number
	if n := r.pool.config.Confirmations; n > 0 && final.Number > 0 { // no tip is below the genesis
		tag, height = "latest", final.Number+n-1
	}
	return func(ctx context.Context, other *endpoint) say {
		// In one request: one that answers now and then need not answer twice in a row.
		replies, err := r.ask(ctx, other, blockCall(tag, false), blockCall(quantity(final.Number), false))
		if err != nil {
			return r.sayOf(ctx, other, final, err)
		}
		top, err := r.seen(other, tag, false, replies[0])
		switch {
		case err != nil:
			return r.sayOf(ctx, other, final, err)
		case top.block.Number < height:
			return saysLater
		case top.block.Hash == final.Hash:
			return saysYes
		}
		switch at, err := r.seen(other, quantity(final.Number), false, replies[1]); {
		case err != nil:
			return saysLater
		case at.block.Hash != final.Hash:
			return saysNo
		}
		return saysYes
	}
}

package rpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Shown confirms a block by more than one endpoint: Agree endpoints must have it at its height,
// with its parent and its time. An error means that nothing is known yet.
func (r *Reader) Shown(ctx context.Context, block chain.Block) error {
	return r.pool.allBearOut(ctx, claim{about: ofBlocks, what: fmt.Sprintf("block %d %s", block.Number, block.Hash), check: r.sameBlock(block)})
}

// sameBlock asks an endpoint for a block. An endpoint with another block at its height may be
// about to follow a reorg, so the disagreement is no lie.
func (r *Reader) sameBlock(block chain.Block) func(context.Context, *endpoint) say {
	return func(ctx context.Context, other *endpoint) say {
		switch got, _, err := r.block(ctx, other, quantity(block.Number)); {
		case err != nil && !errors.Is(err, errNotFound):
			return r.sayOf(ctx, other, block, err)
		case err != nil || got.Hash != block.Hash:
			return saysLater
		case got != block:
			return saysNo
		}
		return saysYes
	}
}

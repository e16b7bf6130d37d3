package watcher

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// receiptOf looks for a transaction's receipt at every endpoint, as of a block. nil means
// that the followed chain holds the transaction in no block up to that one.
//
// Endpoints may be on other branches. A receipt counts only if its block is on the chain
// that is read. A receipt on another branch is ignored, and then only the node that is read
// decides whether its chain holds the transaction.
func (w *Watcher) receiptOf(ctx context.Context, node Lookup, hash chain.Hash, at chain.Block) (*chain.Receipt, error) {
	receipt, err := node.FindReceipt(ctx, hash, at)
	if err != nil || receipt == nil {
		return nil, err
	}
	here, _, err := node.BlockAt(ctx, receipt.Block.Number)
	if err != nil {
		return nil, fmt.Errorf("block %d, reported to contain it: %w", receipt.Block.Number, err)
	}
	if here.Hash == receipt.Block.Hash {
		return receipt, nil
	}
	if err := node.Shown(ctx, here); err != nil {
		return nil, err
	}
	w.Log.Warn("a node is on another branch", "chain", w.Chain, "tx", hash,
		"number", here.Number, "there", receipt.Block.Hash, "here", here.Hash)
	own, err := node.Receipts(ctx, at, []chain.Hash{hash})
	if err != nil {
		return nil, err
	}
	if receipt, ok := own[hash]; ok {
		return &receipt, nil
	}
	return nil, nil
}

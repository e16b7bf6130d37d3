package watcher

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// receiptOf looks for a transaction's receipt at every endpoint, as of a block. nil
// means that the chain which is followed holds the transaction in no block up to that
// one.
//
// Endpoints may be on other branches. A receipt counts only when its block is on the
// chain that is read from; one in a block that is not is no news at all, and then the
// node that is read from alone says whether the transaction is in its chain.
func (w *Watcher) receiptOf(ctx context.Context, hash chain.Hash, at chain.Block) (*chain.Receipt, error) {
	receipt, err := w.Node.FindReceipt(ctx, hash, at)
	if err != nil || receipt == nil {
		return nil, err
	}
	here, _, err := w.Node.BlockAt(ctx, receipt.Block.Number)
	if err != nil {
		return nil, fmt.Errorf("block %d, said to hold it: %w", receipt.Block.Number, err)
	}
	if here.Hash == receipt.Block.Hash {
		return receipt, nil
	}
	if err := w.Node.Shown(ctx, here); err != nil {
		return nil, err
	}
	w.Log.Warn("a node is on another branch", "chain", w.Chain, "tx", hash,
		"number", here.Number, "there", receipt.Block.Hash, "here", here.Hash)
	own, err := w.Node.Receipts(ctx, at, []chain.Hash{hash})
	if err != nil {
		return nil, err
	}
	if receipt, ok := own[hash]; ok {
		return &receipt, nil
	}
	return nil, nil
}

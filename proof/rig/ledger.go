package rig

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// Observe updates a ledger to a node's chain: it adds new blocks, and replaces blocks that
// differ, with their executed transactions. A block with at least confirmations confirmations,
// itself included, is final.
func Observe(ctx context.Context, ledger *promises.Ledger, node string, confirmations uint64) error {
	head, err := blockNumber(ctx, node)
	if err != nil {
		return err
	}
	if known := ledger.Head().Number; known > head {
		ledger.Rewind(head)
	}
	first := uint64(0)
	for n := ledger.Head().Number; n > 0; n-- { // down to the last common block
		b, _, err := blockAt(ctx, node, n)
		if err != nil {
			return err
		}
		if at, ok := ledger.At(n); ok && at.Hash == b.Hash {
			first = n + 1
			break
		}
	}
	for n := first; n <= head; n++ {
		b, hashes, err := blockAt(ctx, node, n)
		if err != nil {
			return err
		}
		executed, err := executions(ctx, node, hashes)
		if err != nil {
			return err
		}
		ledger.Add(b, executed...)
	}
	if head+1 >= confirmations {
		ledger.Finalize(head + 1 - confirmations)
	}
	return nil
}

func blockNumber(ctx context.Context, node string) (uint64, error) {
	var head string
	if err := Call(ctx, node, &head, "eth_blockNumber"); err != nil {
		return 0, err
	}
	return quantity(head)
}

func quantity(s string) (uint64, error) {
	return strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
}

func blockAt(ctx context.Context, node string, n uint64) (b chain.Block, hashes []chain.Hash, err error) {
	var found *struct {
		Number, Timestamp string
		Hash              chain.Hash
		ParentHash        chain.Hash
		Transactions      []chain.Hash
	}
	if err := Call(ctx, node, &found, "eth_getBlockByNumber", fmt.Sprintf("%#x", n), false); err != nil {
		return b, nil, err
	}
	if found == nil {
		return b, nil, fmt.Errorf("block %d is not there", n)
	}
	b = chain.Block{Number: n, Hash: found.Hash, Parent: found.ParentHash}
	b.Time, err = quantity(found.Timestamp)
	return b, found.Transactions, err
}

func executions(ctx context.Context, node string, hashes []chain.Hash) ([]promises.Execution, error) {
	all := make([]promises.Execution, 0, len(hashes))
	for _, hash := range hashes {
		var receipt *struct{ Status string }
		if err := Call(ctx, node, &receipt, "eth_getTransactionReceipt", hash.String()); err != nil {
			return nil, err
		}
		if receipt == nil {
			return nil, fmt.Errorf("%s is in a block and has no receipt", hash)
		}
		status, err := quantity(receipt.Status)
		if err != nil {
			return nil, err
		}
		all = append(all, promises.Execution{Hash: hash, Status: status})
	}
	return all, nil
}

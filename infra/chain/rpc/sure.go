package rpc

import (
	"context"
	"maps"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// SureReceipts is [Reader.Receipts] for what is sealed by them: where others might bear
// them out and are away just now, they are waited for as long as for a final block. Those
// that were borne out before are not asked for again.
func (r *Reader) SureReceipts(ctx context.Context, block chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error) {
	found, open := r.pool.sure.find(block, hashes)
	if len(open) == 0 {
		return found, nil
	}
	more, err := r.receipts(ctx, block, open, ofSealed)
	if err != nil {
		return nil, err
	}
	maps.Copy(found, more)
	return found, nil
}

// sureMax bounds the receipts that are remembered as borne out: what is mined between a
// block and its being final, on a busy chain. Those beyond are asked for once more.
const sureMax = 16384

// sure remembers receipts that are not one endpoint's word alone. The zero value is ready.
type sure struct {
	mu       sync.Mutex
	receipts map[chain.Hash]chain.Receipt // by transaction
	order    []chain.Hash                 // oldest first
}

func (s *sure) add(found map[chain.Hash]chain.Receipt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.receipts == nil {
		s.receipts = map[chain.Hash]chain.Receipt{}
	}
	for hash, receipt := range found {
		if _, known := s.receipts[hash]; !known {
			s.order = append(s.order, hash)
		}
		s.receipts[hash] = receipt
	}
	for len(s.order) > sureMax {
		delete(s.receipts, s.order[0])
		s.order = s.order[1:]
	}
}

// find returns those of the transactions that are known to be in a block, and the others.
func (s *sure) find(block chain.Block, hashes []chain.Hash) (found map[chain.Hash]chain.Receipt, open []chain.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found = make(map[chain.Hash]chain.Receipt, len(hashes))
	for _, hash := range hashes {
		if receipt, known := s.receipts[hash]; known && receipt.Block.Hash == block.Hash {
			found[hash] = receipt
		} else {
			open = append(open, hash)
		}
	}
	return found, open
}

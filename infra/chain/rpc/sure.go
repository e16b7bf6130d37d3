package rpc

import (
	"context"
	"maps"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// SureReceipts is [Reader.Receipts] for sealing verdicts. If other endpoints are away, it waits
// for them as long as for a final block. Receipts that were confirmed before are not asked for
// again.
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

// sureMax bounds the remembered receipts: about as many as a busy chain mines until a block is
// final. Others are asked for once more.
const sureMax = 16384

// sure remembers receipts that other endpoints have confirmed. The zero value is ready.
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

// find returns the receipts of transactions known to be in a block, and the remaining hashes.
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

package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Receipts returns the receipts of these transactions in a block; a hash that the block does
// not hold is absent. All come from one request: the block's receipts for several hashes,
// single receipts otherwise. They count when other endpoints confirm them.
func (r *Reader) Receipts(ctx context.Context, block chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error) {
	return r.receipts(ctx, block, hashes, ofReceipts)
}

func (r *Reader) receipts(ctx context.Context, block chain.Block, hashes []chain.Hash, about subject) (map[chain.Hash]chain.Receipt, error) {
	if len(hashes) == 0 {
		return map[chain.Hash]chain.Receipt{}, nil
	}
	found, by, err := hedgedBy(ctx, r.pool, func(ctx context.Context, e *endpoint) (map[chain.Hash]chain.Receipt, error) {
		return r.receiptsIn(ctx, e, block, hashes)
	})
	if err != nil || len(found) == 0 {
		return found, err
	}
	_, sure, err := r.pool.borneOutBy(ctx, by, claim{
		about, fmt.Sprintf("receipts in block %s", block.Hash), contentOf(block, found), r.sameReceipts(block, found),
	})
	if err != nil {
		r.forget(block.Hash)
		return nil, err
	}
	if sure {
		r.pool.sure.add(found)
	}
	return found, nil
}

// contentOf identifies the claim that a block has these receipts.
func contentOf(block chain.Block, found map[chain.Hash]chain.Receipt) string {
	text := fmt.Appendf(nil, "receipts in %s", block.Hash)
	for _, hash := range slices.SortedFunc(maps.Keys(found), compareHashes) {
		text = fmt.Appendf(text, " %s:%d:%d", hash, found[hash].Index, found[hash].Status)
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

// receiptsIn asks one endpoint for these transactions' receipts in a block, and checks that the
// transactions without a receipt are not in the block.
func (r *Reader) receiptsIn(ctx context.Context, e *endpoint, block chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error) {
	found, err := r.receiptsAt(ctx, e, block, hashes)
	if err != nil {
		return nil, err
	}
	for _, hash := range hashes {
		if _, ok := found[hash]; !ok {
			return found, r.absent(ctx, e, block, hashes, found)
		}
	}
	return found, nil
}

func (r *Reader) receiptsAt(ctx context.Context, e *endpoint, block chain.Block, hashes []chain.Hash) (found map[chain.Hash]chain.Receipt, err error) {
	err = errUnsupported
	if len(hashes) > 1 && !e.noBlockReceipts.Load() {
		found, err = r.blockReceipts(ctx, e, block, hashes)
	}
	if errors.Is(err, errUnsupported) {
		found, err = r.singleReceipts(ctx, e, block, hashes)
	}
	return found, err
}

// inAnotherBlock means that an endpoint has a transaction in another block than the requested
// one: it is on another branch, or a reorg came between.
type inAnotherBlock struct {
	hash, is, not chain.Hash
}

func (e *inAnotherBlock) Error() string {
	return fmt.Sprintf("%s is in block %s there, not in %s", e.hash, e.is, e.not)
}

var errUnsupported = errors.New("the node does not offer this method")

// blockReceipts asks for all receipts of a block.
func (r *Reader) blockReceipts(ctx context.Context, e *endpoint, block chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error) {
	replies, err := r.ask(ctx, e, call{"eth_getBlockReceipts", []any{block.Hash}})
	if err == nil {
		err = replies[0].err
	}
	if code, ok := nodeCode(err); ok && (code == codeUnknownMethod || code == codeUnsupported) {
		if isOwn(ctx) {
			e.noBlockReceipts.Store(true)
		}
		return nil, errUnsupported
	}
	if err != nil {
		return nil, err
	}
	if replies[0].null() {
		return nil, r.pool.dispute(ctx, e, fmt.Errorf("receipts of block %s: %w", block.Hash, errNotFound))
	}
	var texts []json.RawMessage
	if err := replies[0].into(&texts); err != nil {
		return nil, r.pool.dispute(ctx, e, fmt.Errorf("receipts of block %s: %w", block.Hash, err))
	}
	wanted := setOf(hashes)
	found := make(map[chain.Hash]chain.Receipt, len(hashes))
	for _, text := range texts {
		n, err := parseReceipt(text)
		if err == nil && *n.Block != block.Hash {
			err = contradiction("a receipt in block %s", n.Block)
		}
		if err != nil {
			return nil, r.pool.dispute(ctx, e, fmt.Errorf("receipts of block %s: %w", block.Hash, err))
		}
		if wanted[*n.Transaction] {
			found[*n.Transaction] = n.in(block)
		}
	}
	return found, nil
}

// singleReceipts asks for receipts one by one, in batches.
func (r *Reader) singleReceipts(ctx context.Context, e *endpoint, block chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error) {
	found := make(map[chain.Hash]chain.Receipt, len(hashes))
	for chunk := range slices.Chunk(hashes, maxBatch) {
		calls := make([]call, len(chunk))
		for i, hash := range chunk {
			calls[i] = call{"eth_getTransactionReceipt", []any{hash}}
		}
		replies, err := r.ask(ctx, e, calls...)
		if err != nil {
			return nil, err
		}
		for i, hash := range chunk {
			if replies[i].err != nil {
				return nil, replies[i].err
			}
			if replies[i].null() {
				continue
			}
			n, err := parseReceipt(replies[i].result)
			switch {
			case err != nil:
			case *n.Transaction != hash:
				err = contradiction("a receipt of %s", n.Transaction)
			case *n.Block != block.Hash: // a reorg in between: no fault
				return nil, &Unreachable{Endpoint: e.name, Err: &inAnotherBlock{hash, *n.Block, block.Hash}}
			}
			if err != nil {
				return nil, r.pool.dispute(ctx, e, fmt.Errorf("receipt of %s: %w", hash, err))
			}
			found[hash] = n.in(block)
		}
	}
	return found, nil
}

// absent checks that hashes without a receipt are not in the block. A node that has the block
// but not yet its receipts has not answered.
func (r *Reader) absent(ctx context.Context, e *endpoint, block chain.Block, hashes []chain.Hash, found map[chain.Hash]chain.Receipt) error {
	seen, ok := r.recall(block.Hash)
	if !ok {
		var err error
		if seen, err = r.blockByHash(ctx, e, block.Hash); err != nil {
			return err
		}
	}
	held := setOf(seen.contents.Hashes)
	for _, hash := range hashes {
		if _, ok := found[hash]; !ok && held[hash] {
			r.pool.leave(ctx, e)
			return &Unreachable{Endpoint: e.name, Err: fmt.Errorf("no receipt yet of %s in block %s", hash, block.Hash)}
		}
	}
	return nil
}

func setOf(hashes []chain.Hash) map[chain.Hash]bool {
	set := make(map[chain.Hash]bool, len(hashes))
	for _, hash := range hashes {
		set[hash] = true
	}
	return set
}

// FindReceipt asks every healthy endpoint for one transaction's receipt, as of a block or
// later. nil without an error means that none of them has it. Endpoints that have not reached
// the block, or decline, have no vote on that. At least one endpoint must vote, and an
// unreachable endpoint may have the receipt.
//
// A receipt counts when its block is canonical at its endpoint and holds the transaction, and
// other endpoints confirm that. A receipt that most endpoints deny does not count. If endpoints
// differ, the endpoint that reads use goes first.
func (r *Reader) FindReceipt(ctx context.Context, hash chain.Hash, at chain.Block) (*chain.Receipt, error) {
	healthy := r.pool.healthy()
	if len(healthy) == 0 {
		return nil, errNoneHealthy
	}
	if i := slices.Index(healthy, r.pool.reader()); i > 0 {
		healthy[0], healthy[i] = healthy[i], healthy[0]
	}
	receipts := make([]*chain.Receipt, len(healthy))
	errs := make([]error, len(healthy))
	var asked sync.WaitGroup
	for i, e := range healthy {
		asked.Go(func() { receipts[i], errs[i] = r.findAt(ctx, e, hash, at.Number) })
	}
	asked.Wait()
	for i, receipt := range receipts {
		if receipt == nil {
			continue
		}
		denied := (*outvoted)(nil)
		switch err := r.shown(ctx, healthy[i], hash, receipts, *receipt); {
		case err == nil:
			return receipt, nil
		case !errors.As(err, &denied):
			return nil, err
		default:
			errs[i] = &NodeError{Endpoint: healthy[i].name, Message: err.Error()} // no vote
		}
	}
	return nil, absence(errs)
}

// shown checks that other endpoints confirm a receipt. Endpoints that gave the same receipt are
// not asked again.
func (r *Reader) shown(ctx context.Context, e *endpoint, hash chain.Hash, all []*chain.Receipt, receipt chain.Receipt) error {
	same := 0
	for _, other := range all {
		if other != nil && other.Block.Hash == receipt.Block.Hash && other.Status == receipt.Status {
			same++
		}
	}
	found := map[chain.Hash]chain.Receipt{hash: receipt}
	sure, err := same >= r.pool.config.Agree, error(nil)
	if !sure {
		_, sure, err = r.pool.borneOutBy(ctx, e, claim{
			about: ofReceipts, what: fmt.Sprintf("receipt of %s in block %s", hash, receipt.Block.Hash), check: r.sameReceipts(receipt.Block, found),
		})
	}
	if sure {
		r.pool.sure.add(found)
	}
	return err
}

// errBehind means that an endpoint has not reached the block.
var errBehind = errors.New("the node has not reached that block")

// absence combines the results of the endpoints without the receipt; nil means that it is
// certainly absent.
func absence(errs []error) error {
	var silent []error
	for _, err := range errs {
		_, declined := nodeCode(err)
		switch {
		case err == nil:
		case declined && !isLimited(err), errors.Is(err, errBehind):
			silent = append(silent, err)
		default:
			return errors.Join(errs...)
		}
	}
	if len(silent) == len(errs) {
		return errors.Join(silent...)
	}
	return nil
}

func (r *Reader) findAt(ctx context.Context, e *endpoint, hash chain.Hash, at uint64) (*chain.Receipt, error) {
	// One request, because a load balancer sends it to one node. The head comes first, so that
	// it is not newer than the state of the other answers.
	replies, err := r.ask(ctx, e, call{"eth_blockNumber", nil},
		call{"eth_getTransactionReceipt", []any{hash}}, call{"eth_getTransactionByHash", []any{hash}})
	if err == nil {
		err = replies[1].err
	}
	if err != nil {
		return nil, err
	}
	if replies[1].null() {
		return nil, r.lacks(ctx, e, hash, at, replies[0], replies[2])
	}
	n, err := parseReceipt(replies[1].result)
	if err == nil && *n.Transaction != hash {
		err = contradiction("a receipt of %s", n.Transaction)
	}
	if err != nil {
		return nil, r.pool.dispute(ctx, e, fmt.Errorf("receipt of %s: %w", hash, err))
	}
	block, hashes, err := r.block(ctx, e, *n.Number)
	if err != nil {
		return nil, err
	}
	if block.Hash != *n.Block || !slices.Contains(hashes, hash) {
		return nil, r.pool.dispute(ctx, e, fmt.Errorf("receipt of %s: %w", hash,
			contradiction("block %d is %s and does not confirm it", block.Number, block.Hash)))
	}
	receipt := n.in(block)
	return &receipt, nil
}

// lacks returns nil if an endpoint's missing receipt counts: the endpoint has reached the block
// and knows no block that holds the transaction. Receipts may appear later than blocks.
func (r *Reader) lacks(ctx context.Context, e *endpoint, hash chain.Hash, at uint64, head, transaction reply) error {
	var number quantity
	if err := head.into(&number); err != nil {
		return r.pool.dispute(ctx, e, fmt.Errorf("head: %w", err))
	}
	if uint64(number) < at {
		return &Unreachable{Endpoint: e.name, Err: fmt.Errorf("%w: it is at %d, not %d", errBehind, number, at)}
	}
	var known *struct {
		Block *chain.Hash `json:"blockHash"`
	}
	if transaction.err == nil && transaction.into(&known) == nil && known != nil && known.Block != nil && !known.Block.IsZero() {
		return &Unreachable{Endpoint: e.name, Err: fmt.Errorf("no receipt yet of %s, which is in block %s", hash, known.Block)}
	}
	return nil
}

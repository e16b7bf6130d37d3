package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Reader reads the chain. All readers of a pool read from the same endpoint, and
// stay with it while it is healthy and answers, so that calls made one after the other see
// one chain; when it changes between two of them, block hashes still pin what
// they speak of. An error says nothing about the chain.
type Reader struct {
	pool *Pool

	mu     sync.Mutex
	recent []seenBlock // blocks read lately, newest last: a block of a hash never changes
}

type seenBlock struct {
	block  chain.Block
	hashes []chain.Hash
}

// recentMax bounds the blocks a reader remembers.
const recentMax = 8

// Reader returns a reader of the pool's chain.
func (p *Pool) Reader() *Reader { return &Reader{pool: p} }

// ask reads from an endpoint. When it has no answer, or declines, the next read goes
// to another: it may be the only one that cannot say, and no breaker trips for what
// is a small part of its calls, nor for calls that their callers gave up.
func (r *Reader) ask(ctx context.Context, e *endpoint, calls ...call) ([]reply, error) {
	replies, err := r.pool.ask(ctx, e, r.pool.patience(e, calls), maxBlockReply, calls...)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) || slices.ContainsFunc(replies, declined) {
		r.pool.leave(e)
	}
	return replies, err
}

// declined reports whether a node will not answer a call, though it offers the method
// and understands the parameters.
func declined(r reply) bool {
	code, ok := nodeCode(r.err)
	return ok && code != codeUnknownMethod && code != codeUnsupported && code != codeInvalidParams
}

// Head is the newest block.
func (r *Reader) Head(ctx context.Context) (chain.Block, error) {
	return hedged(ctx, r.pool, r.head)
}

func (r *Reader) head(ctx context.Context, e *endpoint) (chain.Block, error) {
	block, _, err := r.block(ctx, e, "latest")
	if err != nil {
		return block, err
	}
	if before := e.headSeen(); block.Number+r.pool.config.MaxLag < before {
		// That deep a fall is another chain's head rather than ours.
		e.doubt()
		if err := r.pool.verify(ctx, e); err != nil {
			return chain.Block{}, &Unreachable{Endpoint: e.name, Err: fmt.Errorf("head fell from %d to %d: %v", before, block.Number, err)}
		}
	}
	r.pool.sawHead(e, block.Number)
	return block, nil
}

// Final is the newest block that can no longer leave the chain: the one the node
// calls finalized, or the one with as many confirmations as configured (the block
// itself counts as the first), at least the genesis.
func (r *Reader) Final(ctx context.Context) (chain.Block, error) {
	return hedged(ctx, r.pool, r.final)
}

func (r *Reader) final(ctx context.Context, e *endpoint) (chain.Block, error) {
	if r.pool.config.Confirmations == 0 {
		block, _, err := r.block(ctx, e, "finalized")
		return block, err
	}
	head, err := r.head(ctx, e)
	depth := r.pool.config.Confirmations - 1
	if err != nil || depth == 0 {
		return head, err
	}
	block, _, err := r.block(ctx, e, quantity(head.Number-min(depth, head.Number)))
	return block, err
}

// BlockByHash returns a block and the hashes of its transactions, in order.
func (r *Reader) BlockByHash(ctx context.Context, hash chain.Hash) (chain.Block, []chain.Hash, error) {
	if seen, ok := r.recall(hash); ok {
		return seen.block, slices.Clone(seen.hashes), nil
	}
	seen, err := hedged(ctx, r.pool, func(ctx context.Context, e *endpoint) (s seenBlock, err error) {
		s.block, s.hashes, err = r.blockByHash(ctx, e, hash)
		return s, err
	})
	return seen.block, seen.hashes, err
}

// BlockAt returns the canonical block of a number, and the hashes of its
// transactions, in order.
func (r *Reader) BlockAt(ctx context.Context, number uint64) (chain.Block, []chain.Hash, error) {
	seen, err := hedged(ctx, r.pool, func(ctx context.Context, e *endpoint) (s seenBlock, err error) {
		s.block, s.hashes, err = r.block(ctx, e, quantity(number))
		return s, err
	})
	return seen.block, seen.hashes, err
}

// block reads a block by tag or number.
func (r *Reader) block(ctx context.Context, e *endpoint, which any) (chain.Block, []chain.Hash, error) {
	replies, err := r.ask(ctx, e, call{"eth_getBlockByNumber", []any{which, false}})
	if err != nil {
		return chain.Block{}, nil, err
	}
	block, hashes, err := parseBlock(replies[0])
	if number, ok := which.(quantity); err == nil && ok && block.Number != uint64(number) {
		err = contradiction("asked for block %d, got %d", number, block.Number)
	}
	return r.checked(e, block, hashes, err, fmt.Sprint(which))
}

func (r *Reader) blockByHash(ctx context.Context, e *endpoint, hash chain.Hash) (chain.Block, []chain.Hash, error) {
	replies, err := r.ask(ctx, e, call{"eth_getBlockByHash", []any{hash, false}})
	if err != nil {
		return chain.Block{}, nil, err
	}
	block, hashes, err := parseBlock(replies[0])
	if err == nil && block.Hash != hash {
		err = contradiction("asked for block %s, got %s", hash, block.Hash)
	}
	return r.checked(e, block, hashes, err, hash.String())
}

// checked remembers a block, or says what is wrong with the answer and whose
// fault it is.
func (r *Reader) checked(e *endpoint, block chain.Block, hashes []chain.Hash, err error, what string) (chain.Block, []chain.Hash, error) {
	if err != nil {
		return chain.Block{}, nil, r.pool.dispute(e, fmt.Errorf("block %s: %w", what, err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.recent, func(seen seenBlock) bool { return seen.block.Hash == block.Hash }) {
		return block, hashes, nil
	}
	r.recent = append(r.recent, seenBlock{block, slices.Clone(hashes)})
	if len(r.recent) > recentMax {
		r.recent = slices.Delete(r.recent, 0, 1)
	}
	return block, hashes, nil
}

func (r *Reader) recall(hash chain.Hash) (seenBlock, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, seen := range r.recent {
		if seen.block.Hash == hash {
			return seen, true
		}
	}
	return seenBlock{}, false
}

// forget drops a block that others do not bear out.
func (r *Reader) forget(hash chain.Hash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent = slices.DeleteFunc(r.recent, func(seen seenBlock) bool { return seen.block.Hash == hash })
}

// dispute counts an answer that cannot be used against its endpoint and names it.
// A node's own error, and a block that it does not have, count for nothing: they
// were counted, or are no fault.
func (p *Pool) dispute(e *endpoint, err error) error {
	var node *NodeError
	if errors.As(err, &node) {
		return err
	}
	if !errors.Is(err, errNotFound) {
		p.blame(e, err)
	}
	return &Unreachable{Endpoint: e.name, Err: err}
}

// parseBlock reads a block with the hashes of its transactions.
func parseBlock(r reply) (chain.Block, []chain.Hash, error) {
	if r.null() {
		return chain.Block{}, nil, errNotFound
	}
	var b struct {
		Number       *quantity    `json:"number"`
		Hash         *chain.Hash  `json:"hash"`
		Parent       *chain.Hash  `json:"parentHash"`
		Time         *quantity    `json:"timestamp"`
		Transactions []chain.Hash `json:"transactions"`
	}
	if err := r.into(&b); err != nil {
		return chain.Block{}, nil, err
	}
	if b.Number == nil || b.Hash == nil || b.Hash.IsZero() || b.Parent == nil || b.Time == nil {
		return chain.Block{}, nil, contradiction("a block without number, hash, parent or time")
	}
	return chain.Block{Number: uint64(*b.Number), Hash: *b.Hash, Parent: *b.Parent, Time: uint64(*b.Time)}, b.Transactions, nil
}

// nodeReceipt is a receipt as nodes write it; what delivery does not care for,
// such as the type, is not looked at.
type nodeReceipt struct {
	Transaction *chain.Hash    `json:"transactionHash"`
	Block       *chain.Hash    `json:"blockHash"`
	Number      *quantity      `json:"blockNumber"`
	Index       *quantity      `json:"transactionIndex"`
	Status      *quantity      `json:"status"`
	GasUsed     *quantity      `json:"gasUsed"`
	GasPrice    *wide          `json:"effectiveGasPrice"`
	FeePayer    *chain.Address `json:"feePayer"`
	FeeToken    *chain.Address `json:"feeToken"`
}

// wide is a quantity of up to 256 bits.
type wide struct{ uint256.Int }

func (w *wide) UnmarshalText(b []byte) error { return w.SetFromHex(string(b)) }
func (w *wide) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	return w.UnmarshalText([]byte(s))
}

// parseReceipt reads a receipt that must be complete.
func parseReceipt(text json.RawMessage) (nodeReceipt, error) {
	var n nodeReceipt
	if err := json.Unmarshal(text, &n); err != nil {
		return n, contradiction("%v", trim(err))
	}
	switch {
	case n.Transaction == nil || n.Block == nil || n.Number == nil || n.Index == nil || n.Status == nil || n.GasUsed == nil:
		return n, contradiction("a receipt without hash, block, index, status or gas")
	case *n.Status > 1:
		return n, contradiction("a receipt with status %d", *n.Status)
	}
	return n, nil
}

func (n nodeReceipt) in(block chain.Block) chain.Receipt {
	receipt := chain.Receipt{
		Block: block, Index: uint64(*n.Index), Status: uint64(*n.Status), GasUsed: uint64(*n.GasUsed),
		FeePayer: n.FeePayer, FeeToken: n.FeeToken,
	}
	if n.GasPrice != nil {
		receipt.EffectiveGasPrice = n.GasPrice.Dec()
	}
	return receipt
}

package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Reader reads the chain. All readers of a pool read from the same endpoint, and stay with it
// while it is healthy and answers, so that consecutive calls see one chain. If the endpoint
// changes between two calls, block hashes still identify their blocks. An error says nothing
// about the chain.
type Reader struct {
	pool  *Pool
	heads chorus[chain.Block]

	mu      sync.Mutex
	recent  []seenBlock // recently read blocks, newest last: the block of a hash never changes
	final   finalWord
	clients map[pausedClient]*ClientReader
}

type seenBlock struct {
	block    chain.Block
	contents chain.Contents
}

// recentMax bounds the blocks a reader remembers.
const recentMax = 8

// Reader returns a reader of the pool's chain.
func (p *Pool) Reader() *Reader { return &Reader{pool: p} }

// ask reads from an endpoint. If it has no answer or declines, the next read goes to another
// endpoint: this one alone may be unable, and a small share of failing calls trips no breaker.
// Calls that their callers gave up do not count.
func (r *Reader) ask(ctx context.Context, e *endpoint, calls ...call) ([]reply, error) {
	return r.askFor(ctx, e, useOf(ctx), calls...)
}

func (r *Reader) askFor(ctx context.Context, e *endpoint, use purpose, calls ...call) ([]reply, error) {
	replies, err := r.pool.askFor(ctx, e, use, r.pool.patience(e, calls), maxBlockReply, calls...)
	// A trial for a client does not change the endpoint that reads use.
	if !use.ofClients() && (err != nil && !errors.Is(ctx.Err(), context.Canceled) || slices.ContainsFunc(replies, declined)) {
		r.pool.leave(ctx, e)
	}
	return replies, err
}

// declined reports whether a node refuses a call although it offers the method and understands
// the parameters. A revert is an answer.
func declined(r reply) bool {
	code, ok := nodeCode(r.err)
	return ok && code != codeUnknownMethod && code != codeUnsupported && code != codeInvalidParams && code != codeReverted
}

// Head returns the newest block. Callers that arrive during a reading share the next reading,
// so many at once cost little more than one.
func (r *Reader) Head(ctx context.Context) (chain.Block, error) {
	return r.heads.do(ctx, r.head)
}

func (r *Reader) head(ctx context.Context) (chain.Block, error) {
	return hedged(ctx, r.pool, func(ctx context.Context, e *endpoint) (chain.Block, error) { return r.newest(ctx, e, false) })
}

// Newest is Head for callers that go on to BlockByHash: it reads the whole block, so that no
// second request is needed.
func (r *Reader) Newest(ctx context.Context) (chain.Block, error) {
	asked := r.pool.config.Now()
	b, err := hedged(ctx, r.pool, func(ctx context.Context, e *endpoint) (chain.Block, error) { return r.newest(ctx, e, true) })
	if err == nil {
		r.pool.cadence.saw(asked, b)
		r.pool.newest.saw(asked, b, nil)
	}
	return b, err
}

func (r *Reader) newest(ctx context.Context, e *endpoint, whole bool) (chain.Block, error) {
	seen, err := r.read(ctx, e, "latest", whole)
	if err != nil {
		return seen.block, err
	}
	block := seen.block
	if before := e.headSeen(); block.Number+r.pool.config.MaxLag < before {
		// A fall this deep suggests the head of another chain.
		e.doubt()
		if err := r.pool.verify(ctx, e); err != nil {
			return chain.Block{}, &Unreachable{Endpoint: e.name, Err: fmt.Errorf("head fell from %d to %d: %w", before, block.Number, err)}
		}
	}
	r.pool.sawHead(e, block.Number)
	return block, nil
}

// BlockByHash returns a block and its contents.
func (r *Reader) BlockByHash(ctx context.Context, hash chain.Hash) (chain.Block, chain.Contents, error) {
	if seen, ok := r.recall(hash); ok {
		return seen.block, seen.contents, nil
	}
	seen, err := hedged(ctx, r.pool, func(ctx context.Context, e *endpoint) (seenBlock, error) {
		return r.blockByHash(ctx, e, hash)
	})
	return seen.block, seen.contents, err
}

// BlockAt returns the canonical block of a number, and the hashes of its
// transactions, in order.
func (r *Reader) BlockAt(ctx context.Context, number uint64) (chain.Block, []chain.Hash, error) {
	seen, err := hedged(ctx, r.pool, func(ctx context.Context, e *endpoint) (seenBlock, error) {
		return r.read(ctx, e, quantity(number), false)
	})
	return seen.block, seen.contents.Hashes, err
}

// BlockWhole is BlockAt with all contents of the block.
func (r *Reader) BlockWhole(ctx context.Context, number uint64) (chain.Block, chain.Contents, error) {
	seen, err := hedged(ctx, r.pool, func(ctx context.Context, e *endpoint) (seenBlock, error) {
		return r.read(ctx, e, quantity(number), true)
	})
	return seen.block, seen.contents, err
}

// block reads a block by tag or number, and the hashes of its transactions.
func (r *Reader) block(ctx context.Context, e *endpoint, which any) (chain.Block, []chain.Hash, error) {
	seen, err := r.read(ctx, e, which, false)
	return seen.block, seen.contents.Hashes, err
}

// read reads a block by tag or number, whole or with its transactions' hashes only.
func (r *Reader) read(ctx context.Context, e *endpoint, which any, whole bool) (seenBlock, error) {
	replies, err := r.ask(ctx, e, blockCall(which, whole))
	if err != nil {
		return seenBlock{}, err
	}
	return r.seen(ctx, e, which, whole, replies[0])
}

// blockCall asks for a block by tag or number, whole or with its transactions' hashes only.
func blockCall(which any, whole bool) call {
	return call{"eth_getBlockByNumber", []any{which, whole}}
}

// seen parses the answer to blockCall.
func (r *Reader) seen(ctx context.Context, e *endpoint, which any, whole bool, answer reply) (seenBlock, error) {
	seen, err := parseBlock(answer, r.pool.config.Chain)
	if number, ok := which.(quantity); err == nil && ok && seen.block.Number != uint64(number) {
		err = contradiction("asked for block %d, got %d", number, seen.block.Number)
	}
	if number, ok := which.(quantity); ok && errors.Is(err, errNotFound) && uint64(number) <= e.headSeen() {
		err = r.pool.owed(e, err)
	}
	return r.checked(ctx, e, seen, whole, err, fmt.Sprint(which))
}

func (r *Reader) blockByHash(ctx context.Context, e *endpoint, hash chain.Hash) (seenBlock, error) {
	replies, err := r.ask(ctx, e, call{"eth_getBlockByHash", []any{hash, true}})
	if err != nil {
		return seenBlock{}, err
	}
	seen, err := parseBlock(replies[0], r.pool.config.Chain)
	if err == nil && seen.block.Hash != hash {
		err = contradiction("asked for block %s, got %s", hash, seen.block.Hash)
	}
	if errors.Is(err, errNotFound) {
		err = r.pool.owed(e, err)
	}
	return r.checked(ctx, e, seen, true, err, hash.String())
}

// checked remembers a block that was read whole. If the answer is unusable, it counts that
// against the endpoint and returns the error.
func (r *Reader) checked(ctx context.Context, e *endpoint, seen seenBlock, whole bool, err error, what string) (seenBlock, error) {
	if err != nil {
		return seenBlock{}, r.pool.dispute(ctx, e, fmt.Errorf("block %s: %w", what, err))
	}
	if !whole {
		return seen, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.recent, func(known seenBlock) bool { return known.block.Hash == seen.block.Hash }) {
		return seen, nil
	}
	r.recent = append(r.recent, seen)
	if len(r.recent) > recentMax {
		r.recent = slices.Delete(r.recent, 0, 1)
	}
	return seen, nil
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

// forget drops a block that other endpoints do not confirm.
func (r *Reader) forget(hash chain.Hash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent = slices.DeleteFunc(r.recent, func(seen seenBlock) bool { return seen.block.Hash == hash })
}

// dispute counts an unusable answer against its endpoint and adds the endpoint to the error. A
// node's own error does not count again, and a missing block is no fault. Answers to a client's
// reads do not count: see [ClientReader].
func (p *Pool) dispute(ctx context.Context, e *endpoint, err error) error {
	var node *NodeError
	if errors.As(err, &node) {
		return err
	}
	if isOwn(ctx) && !errors.Is(err, errNotFound) {
		p.blame(e, err)
	}
	return &Unreachable{Endpoint: e.name, Err: err}
}

// parseBlock reads a block with its transactions, or with their hashes.
func parseBlock(answer reply, id chain.ID) (seenBlock, error) {
	if answer.null() {
		return seenBlock{}, errNotFound
	}
	var b struct {
		Number       *quantity   `json:"number"`
		Hash         *chain.Hash `json:"hash"`
		Parent       *chain.Hash `json:"parentHash"`
		Time         *quantity   `json:"timestamp"`
		Transactions []entry     `json:"transactions"`
	}
	if err := answer.into(&b); err != nil {
		return seenBlock{}, err
	}
	if b.Number == nil || b.Hash == nil || b.Hash.IsZero() || b.Parent == nil || b.Time == nil {
		return seenBlock{}, contradiction("a block without number, hash, parent or time")
	}
	seen := seenBlock{block: chain.Block{Number: uint64(*b.Number), Hash: *b.Hash, Parent: *b.Parent, Time: uint64(*b.Time)}}
	seen.contents.Hashes = make([]chain.Hash, len(b.Transactions))
	for i, t := range b.Transactions {
		seen.contents.Hashes[i] = t.Hash
		if t.From == nil || t.Nonce == nil || t.NonceKey.IsExpiring() || *t.Nonce == math.MaxUint64 {
			continue
		}
		if seen.contents.Used == nil {
			seen.contents.Used = map[chain.Sequence]uint64{}
		}
		sequence := chain.Sequence{Chain: id, Sender: *t.From, Key: t.NonceKey}
		seen.contents.Used[sequence] = max(seen.contents.Used[sequence], uint64(*t.Nonce)+1)
	}
	return seen, nil
}

// entry is a transaction in a block: its hash, and its fields if the block is whole.
type entry struct {
	Hash     chain.Hash     `json:"hash"`
	From     *chain.Address `json:"from"`
	NonceKey chain.NonceKey `json:"nonceKey"`
	Nonce    *quantity      `json:"nonce"`
}

// UnmarshalJSON reads a transaction, or a hash alone.
func (t *entry) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &t.Hash)
	}
	type whole entry // without this method
	err := json.Unmarshal(b, (*whole)(t))
	if err == nil && t.Hash.IsZero() {
		err = contradiction("a transaction without hash")
	}
	return err
}

// nodeReceipt is a receipt as nodes write it, without the fields that delivery does not use,
// such as the type.
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

// parseReceipt reads a receipt and requires that it is complete.
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

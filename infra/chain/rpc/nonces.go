package rpc

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// nonceManager is Tempo's precompile for nonce keys other than zero, and getNonce
// its selector for getNonce(address,uint256). Source: the tempoxyz/tempo node,
// crates/precompiles/src/nonce.
const (
	nonceManager = "0x4e4f4e4345000000000000000000000000000000"
	getNonce     = "0x89535803"
)

// Nonces returns, for each sequence, the next nonce the chain wants at a block.
// The state is that of the block's hash (EIP-1898). A node that cannot name a
// block by hash is asked by number, and whether that number is still that block.
// A nonce above zero makes transactions stale, so it counts when other endpoints bear
// it out.
func (r *Reader) Nonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error) {
	type source struct {
		nonces []uint64
		e      *endpoint
	}
	from, err := hedged(ctx, r.pool, func(ctx context.Context, e *endpoint) (source, error) {
		nonces, err := r.noncesAt(ctx, e, at, sequences)
		return source{nonces, e}, err
	})
	if err != nil {
		return nil, err
	}
	var used []chain.Sequence
	var values []uint64
	for i, n := range from.nonces {
		if n > 0 {
			used, values = append(used, sequences[i]), append(values, n)
		}
	}
	if len(used) > 0 {
		what := fmt.Sprintf("nonces at block %s", at.Hash)
		if err := r.pool.borneOut(ctx, from.e, what, r.sameNonces(at, used, values)); err != nil {
			return nil, err
		}
	}
	return from.nonces, nil
}

func (r *Reader) noncesAt(ctx context.Context, e *endpoint, at chain.Block, sequences []chain.Sequence) ([]uint64, error) {
	nonces := make([]uint64, 0, len(sequences))
	for chunk := range slices.Chunk(sequences, maxBatch-1) {
		found, err := r.nonces(ctx, e, at, chunk, map[string]any{"blockHash": at.Hash})
		if code, ok := nodeCode(err); ok && code == codeInvalidParams {
			found, err = r.nonces(ctx, e, at, chunk, quantity(at.Number))
		}
		if err != nil {
			return nil, err
		}
		nonces = append(nonces, found...)
	}
	return nonces, nil
}

func (r *Reader) nonces(ctx context.Context, e *endpoint, at chain.Block, sequences []chain.Sequence, state any) ([]uint64, error) {
	var calls []call
	for _, s := range sequences {
		if s.Chain != r.pool.config.Chain {
			panic(fmt.Sprintf("rpc: a sequence of chain %d asked of chain %d", s.Chain, r.pool.config.Chain))
		}
		if !s.Key.IsExpiring() {
			calls = append(calls, nonceCall(s, state))
		}
	}
	if len(calls) == 0 {
		return make([]uint64, len(sequences)), nil
	}
	_, byNumber := state.(quantity)
	if byNumber {
		calls = append(calls, call{"eth_getBlockByNumber", []any{state, false}})
	}
	replies, err := r.ask(ctx, e, calls...)
	if err != nil {
		return nil, err
	}
	if byNumber {
		seen, err := parseBlock(replies[len(replies)-1], r.pool.config.Chain)
		if err == nil && seen.block.Hash != at.Hash {
			err = fmt.Errorf("block %d is %s there, not %s", at.Number, seen.block.Hash, at.Hash)
		}
		if err != nil {
			return nil, &Unreachable{Endpoint: e.name, Err: err}
		}
	}
	nonces := make([]uint64, len(sequences))
	for i, s := range sequences {
		if s.Key.IsExpiring() {
			continue // such a key counts nothing: its nonce is 0 for ever
		}
		if nonces[i], err = parseNonce(replies[0], s.Key); err != nil {
			return nil, r.pool.dispute(e, fmt.Errorf("nonce of %s with key %s: %w", s.Sender, s.Key, err))
		}
		replies = replies[1:]
	}
	return nonces, nil
}

func nonceCall(s chain.Sequence, state any) call {
	if s.Key.IsZero() {
		return call{"eth_getTransactionCount", []any{s.Sender, state}}
	}
	input := getNonce + "000000000000000000000000" + hex.EncodeToString(s.Sender[:]) + hex.EncodeToString(s.Key[:])
	return call{"eth_call", []any{map[string]string{"to": nonceManager, "data": input}, state}}
}

func parseNonce(r reply, key chain.NonceKey) (uint64, error) {
	if key.IsZero() {
		var n *quantity
		if err := r.into(&n); err != nil {
			return 0, err
		}
		if n == nil {
			return 0, contradiction("no number")
		}
		return uint64(*n), nil
	}
	var word *chain.Hash // 32 bytes, like a hash
	if err := r.into(&word); err != nil {
		return 0, err
	}
	if word == nil {
		return 0, contradiction("no number")
	}
	for _, b := range word[:24] {
		if b != 0 {
			return 0, contradiction("%s is more than 64 bits", word)
		}
	}
	return binary.BigEndian.Uint64(word[24:]), nil
}

package rpc

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// nonceManager is Tempo's precompile for nonce keys other than zero. getNonce is its selector
// for getNonce(address,uint256). Source: the tempoxyz/tempo node, crates/precompiles/src/nonce.
const (
	nonceManager = "0x4e4f4e4345000000000000000000000000000000"
	getNonce     = "0x89535803"
)

// Nonces returns the chain's next nonce for each sequence at a block. A nonce above zero makes
// transactions stale, so it counts when other endpoints confirm it.
func (r *Reader) Nonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error) {
	return r.nonces(ctx, at, sequences, 1)
}

// SureNonces is Nonces for a caller that concludes something from a nonce that is still free: a
// nonce of zero, too, counts when other endpoints confirm it.
func (r *Reader) SureNonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error) {
	return r.nonces(ctx, at, sequences, 0)
}

// SureNonces is [Reader.SureNonces]. Nothing of it is remembered.
func (c *ClientReader) SureNonces(ctx context.Context, at chain.Block, sequences []chain.Sequence) ([]uint64, error) {
	return placed(ctx, c, func(ctx context.Context) ([]uint64, error) { return c.reader.SureNonces(ctx, at, sequences) })
}

// nonces are the nonces at a block. Other endpoints confirm the ones from least upwards.
func (r *Reader) nonces(ctx context.Context, at chain.Block, sequences []chain.Sequence, least uint64) ([]uint64, error) {
	nonces, by, err := hedgedBy(ctx, r.pool, func(ctx context.Context, e *endpoint) ([]uint64, error) {
		return r.noncesAt(ctx, e, at, sequences)
	})
	if err != nil {
		return nil, err
	}
	var used []chain.Sequence
	var values []uint64
	for i, n := range nonces {
		if n >= least && !sequences[i].Key.IsExpiring() {
			used, values = append(used, sequences[i]), append(values, n)
		}
	}
	if len(used) == 0 {
		return nonces, nil
	}
	if err := r.pool.borneOut(ctx, by, claim{about: ofNonces, what: fmt.Sprintf("nonces at block %s", at.Hash), check: r.sameNonces(at, used, values)}); err != nil {
		return nil, err
	}
	return nonces, nil
}

func (r *Reader) noncesAt(ctx context.Context, e *endpoint, at chain.Block, sequences []chain.Sequence) ([]uint64, error) {
	var counted []int // places of sequences that are asked for: an expiring key's nonce is always 0
	for i, s := range sequences {
		if s.Chain != r.pool.config.Chain {
			panic(fmt.Sprintf("rpc: a sequence of chain %d asked of chain %d", s.Chain, r.pool.config.Chain))
		}
		if !s.Key.IsExpiring() {
			counted = append(counted, i)
		}
	}
	replies, err := r.stateAt(ctx, e, useOf(ctx), at, len(counted), func(n int, state any) call {
		return nonceCall(sequences[counted[n]], state)
	})
	if err != nil {
		return nil, err
	}
	nonces := make([]uint64, len(sequences))
	for n, i := range counted {
		s := sequences[i]
		if nonces[i], err = parseNonce(replies[n], s.Key); err != nil {
			return nil, r.pool.dispute(ctx, e, fmt.Errorf("nonce of %s with key %s: %w", s.Sender, s.Key, err))
		}
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
	var word *chain.Hash // a 32-byte word, parsed as a hash
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

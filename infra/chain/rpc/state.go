package rpc

import (
	"context"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// stateMost is the number of state questions per request: the batch may need one more call.
const stateMost = maxBatch - 1

// stateAt asks one endpoint n questions about the state after a block, one call each, and
// returns the replies in order. The state is identified by the block's hash (EIP-1898). A node
// that does not support that is asked by number, and also whether the block of this number is
// still the same.
func (r *Reader) stateAt(ctx context.Context, e *endpoint, use purpose, at chain.Block, n int, question func(i int, state any) call) ([]reply, error) {
	all := make([]reply, 0, n)
	for from := 0; from < n; from += stateMost {
		ask := func(state any) (calls []call) {
			for i := from; i < min(from+stateMost, n); i++ {
				calls = append(calls, question(i, state))
			}
			return calls
		}
		replies, err := r.askFor(ctx, e, use, ask(map[string]any{"blockHash": at.Hash})...)
		if namesNoHash(err) || slices.ContainsFunc(replies, func(r reply) bool { return namesNoHash(r.err) }) {
			replies, err = r.stateByNumber(ctx, e, use, at, ask(quantity(at.Number)))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, replies...)
	}
	return all, nil
}

// namesNoHash reports whether a node's error means that it does not accept block hashes.
func namesNoHash(err error) bool {
	code, ok := nodeCode(err)
	return ok && code == codeInvalidParams
}

func (r *Reader) stateByNumber(ctx context.Context, e *endpoint, use purpose, at chain.Block, calls []call) ([]reply, error) {
	replies, err := r.askFor(ctx, e, use, append(calls, call{"eth_getBlockByNumber", []any{quantity(at.Number), false}})...)
	if err != nil {
		return nil, err
	}
	seen, err := parseBlock(replies[len(calls)], r.pool.config.Chain)
	if err == nil && seen.block.Hash != at.Hash {
		err = fmt.Errorf("block %d is %s there, not %s", at.Number, seen.block.Hash, at.Hash)
	}
	if err != nil {
		return nil, &Unreachable{Endpoint: e.name, Err: err}
	}
	return replies[:len(calls)], nil
}

package rpc

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// balanceOf is the selector of balanceOf(address). Source: ERC-20, which TIP-20 contains.
const balanceOf = "0x70a08231"

// Balances returns the accounts' balances at the newest state, in their order, from one
// endpoint: in the chain's own currency, or in a token, in its smallest unit. All are asked for
// in one request, up to the batch limit.
func (r *Reader) Balances(ctx context.Context, token *chain.Address, of []chain.Address) ([]chain.Amount, error) {
	return hedged(ctx, r.pool, func(ctx context.Context, e *endpoint) ([]chain.Amount, error) {
		all := make([]chain.Amount, 0, len(of))
		for from := 0; from < len(of); from += maxBatch {
			some := of[from:min(from+maxBatch, len(of))]
			calls := make([]call, len(some))
			for i, a := range some {
				calls[i] = balanceCall(token, a)
			}
			replies, err := r.ask(ctx, e, calls...)
			if err != nil {
				return nil, err
			}
			for i, reply := range replies {
				balance, err := parseBalance(reply)
				if err != nil {
					return nil, fmt.Errorf("balance of %s: %w", some[i], err)
				}
				all = append(all, balance)
			}
		}
		return all, nil
	})
}

func balanceCall(token *chain.Address, of chain.Address) call {
	if token == nil {
		return call{"eth_getBalance", []any{of, "latest"}}
	}
	const padding = "000000000000000000000000"
	return call{"eth_call", []any{map[string]string{"to": token.String(), "data": balanceOf + padding + hex.EncodeToString(of[:])}, "latest"}}
}

// parseBalance reads a quantity, or a 32-byte word as contracts return it.
func parseBalance(r reply) (chain.Amount, error) {
	var text *string
	if err := r.into(&text); err != nil {
		return chain.Amount{}, err
	}
	if text == nil {
		return chain.Amount{}, contradiction("no number")
	}
	digits := *text
	if len(digits) == 2+64 {
		raw, err := hex.DecodeString(digits[2:])
		if err != nil {
			return chain.Amount{}, contradiction("%.80q is not a number", digits)
		}
		return chain.Amount(*new(uint256.Int).SetBytes(raw)), nil
	}
	n, err := uint256.FromHex(digits)
	if err != nil {
		return chain.Amount{}, contradiction("%.80q is not a number", digits)
	}
	return chain.Amount(*n), nil
}

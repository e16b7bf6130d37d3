package rpc

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// A witness never votes because its node stores no receipts, or cannot read them. It delays
// other endpoints' claims for at most a minute.
func TestWitnessesWithoutReceipts(t *testing.T) {
	for name, answer := range map[string]string{
		"keeps none":         `"result":null`,
		"internal error":     `"error":{"code":-32603,"message":"internal error"}`,
		"does not offer":     `"error":{"code":-32601,"message":"the method does not exist"}`,
		"no history":         `"error":{"code":-32000,"message":"pruned history unavailable"}`,
		"asks to be left":    `"error":{"code":-32005,"message":"limit exceeded"}`,
		"no hash parameters": `"error":{"code":-32602,"message":"invalid argument 0"}`,
	} {
		for _, n := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s, %d endpoints", name, n), func(t *testing.T) {
				t.Parallel()
				clock := newTimer()
				c := newCourt(t, n, func(c *Config) { c.Now = clock.running() })
				raw, hash := plain(alice, key5, 0)
				other, otherHash := plain(bob, key5, 0)
				b := mine(t, c.Chain, raw, other)
				c.liar.replace(t, "eth_getTransactionReceipt", answer)
				var err error
				for range 6 {
					clock.advance(missedFor / 4)
					_, err = c.pool.Reader().Receipts(t.Context(), b, []chain.Hash{hash})
					if err == nil {
						break
					}
				}
				if err != nil {
					t.Errorf("one receipt: %v", err)
				}
				for range 6 {
					clock.advance(missedFor / 4)
					if _, err = c.pool.Reader().FindReceipt(t.Context(), hash, b); err == nil {
						break
					}
				}
				if err != nil {
					t.Errorf("found: %v", err)
				}
				c.liar.replace(t, "eth_getBlockReceipts", answer)
				for range 6 {
					clock.advance(missedFor / 4)
					if _, err = c.pool.Reader().Receipts(t.Context(), b, []chain.Hash{hash, otherHash}); err == nil {
						break
					}
				}
				if err != nil {
					t.Errorf("a block's receipts: %v", err)
				}
				began := time.Now()
				if _, err = c.pool.Reader().Receipts(t.Context(), b, []chain.Hash{hash}); err != nil || time.Since(began) >= agreeWithin {
					t.Errorf("once that is known: %v after %s", err, time.Since(began))
				}
			})
		}
	}
}

// The same holds for a witness that cannot serve the state at a block.
func TestWitnessesWithoutState(t *testing.T) {
	for name, answer := range map[string]string{
		"internal error": `"error":{"code":-32603,"message":"internal error"}`,
		"no history":     `"error":{"code":-32000,"message":"missing trie node"}`,
		"invalid":        `"error":{"code":-32602,"message":"invalid argument 0"}`,
		"no object":      `"error":{"code":-32000,"message":"invalid argument 1: json: cannot unmarshal object into Go value of type string"}`,
	} {
		for _, n := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s, %d endpoints", name, n), func(t *testing.T) {
				t.Parallel()
				clock := newTimer()
				c := newCourt(t, n, func(c *Config) { c.Now = clock.now })
				raw, _ := plain(alice, chain.NonceKey{}, 0)
				b := mine(t, c.Chain, raw)
				c.liar.replace(t, "eth_getTransactionCount", answer)
				var got []uint64
				var err error
				for range 6 {
					clock.advance(missedFor / 4)
					if got, err = c.pool.Reader().Nonces(t.Context(), b, []chain.Sequence{{Chain: id, Sender: alice}}); err == nil {
						break
					}
				}
				if err != nil || !slices.Equal(got, []uint64{1}) {
					t.Errorf("%d, %v", got, err)
				}
			})
		}
	}
}

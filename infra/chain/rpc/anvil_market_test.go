package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// A real node's base fee moves as the node predicts, and the reported tips are the paid tips.
func TestAnvilMarket(t *testing.T) {
	p := anvil(t, "--gas-limit", "63000")
	ask := func() chain.Market {
		t.Helper()
		for {
			m, err := p.Reader().Market(5, 10, 50, 90).Market(t.Context())
			if err != nil || m.Next == nil {
				t.Fatalf("%+v, %v", m, err)
			}
			if uint64(len(m.Blocks)) == min(m.Head+1, 5) { // anvil records a block's fees some time after mining it
				return m
			}
		}
	}
	ask() // of the genesis block alone
	for nonce := range uint64(2) {
		raw, hash := signed(t, devKey, nonce, func(d *types.DynamicFeeTx) { d.GasTipCap = big.NewInt(int64(nonce+1) * gwei) })
		if got := sendOne(t, p, raw, hash); got.Class != tx.Taken {
			t.Fatalf("%+v", got)
		}
	}
	control(t, p, new(json.RawMessage), "evm_mine")
	full := ask()
	paid := full.Blocks[len(full.Blocks)-1]
	if paid.Full < 0.6 || paid.Full > 0.7 || paid.Tips[0] != chain.PriceOf(gwei) || paid.Tips[2] != chain.PriceOf(2*gwei) {
		t.Errorf("the block paid %+v", paid)
	}
	if comparePrices(*full.Next, paid.BaseFee) <= 0 {
		t.Errorf("the base fee is %s after a full block of %s", full.Next, paid.BaseFee)
	}
	control(t, p, new(json.RawMessage), "evm_mine")
	empty := ask()
	if got := empty.Blocks[len(empty.Blocks)-1].BaseFee; got != *full.Next {
		t.Errorf("the next base fee was %s, and said to become %s", got, full.Next)
	}
	control(t, p, new(json.RawMessage), "anvil_setNextBlockBaseFeePerGas", fmt.Sprintf("0x%x", 90*gwei))
	control(t, p, new(json.RawMessage), "evm_mine")
	if spiked := ask(); spiked.Blocks[len(spiked.Blocks)-1].BaseFee != chain.PriceOf(90*gwei) {
		t.Errorf("the spike is not seen: %+v", spiked)
	}
}

// failingCode returns the bytes that follow it as a revert reason: CODECOPY of 100 bytes from
// offset 12, then REVERT.
const failingCode = "0x6064600c60003960646000fd" + outOfFunds

func TestAnvilTrials(t *testing.T) {
	for name, args := range map[string][]string{"ethereum": nil, "tempo": {"--network", "tempo", "--hardfork", "T4"}} {
		t.Run(name, func(t *testing.T) {
			p := anvil(t, args...)
			r := p.Reader()
			control(t, p, new(json.RawMessage), "anvil_setCode", bob, failingCode)
			kinds := []uint8{2}
			if name == "tempo" {
				kinds = append(kinds, 0x76)
			}
			var accounts []chain.Address
			control(t, p, &accounts, "eth_accounts")
			for _, kind := range kinds {
				fine, bad := free(kind, chain.Address{9}), free(kind, bob)
				gas, err := r.EstimateGas(t.Context(), "", accounts[0], fine)
				if err != nil || gas < 21_000 || gas > 400_000 {
					t.Errorf("type %d: %d, %v", kind, gas, err)
				}
				fine.Gas = 2 * gas
				if err := r.Simulate(t.Context(), "", accounts[0], fine); err != nil {
					t.Errorf("type %d: %v", kind, err)
				}
				_, estimated := r.EstimateGas(t.Context(), "", accounts[0], bad)
				for _, err := range []error{estimated, r.Simulate(t.Context(), "", accounts[0], bad)} {
					var reverted *chain.Reverted
					if !errors.As(err, &reverted) || err.Error() != "it would revert: out of funds" {
						t.Errorf("type %d: %v", kind, err)
					}
				}
			}
		})
	}
}

// free is a transaction that transfers nothing, with a nonce key if the kind has one.
func free(kind uint8, to ...chain.Address) chain.Unsigned {
	tx := chain.Unsigned{Type: kind, Chain: id}
	if kind == batchType {
		tx.NonceKey = key5
	}
	for _, a := range to {
		tx.Calls = append(tx.Calls, chain.Call{To: &a, Value: new(uint256.Int)})
	}
	return tx
}

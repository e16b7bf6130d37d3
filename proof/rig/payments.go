package rig

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// TempoChain is the chain id of [server.TempoFlags].
const TempoChain chain.ID = 42431

// Payment is a signed transaction that transfers units of a token, with its hashes.
type Payment struct {
	Raw  []byte
	Hash chain.Hash // hash on the chain; here also the keccak of Raw
}

// Payments signs n independent transfers of one unit each to an account without other payments.
// Each has its own nonce key, so none waits for another. series distinguishes loads.
func Payments(series uint32, n int) ([]Payment, chain.Address) {
	to := chain.Address{0: 0x77, 19: 1}
	binary.BigEndian.PutUint32(to[4:], series)
	payments := make([]Payment, n)
	for i := range payments {
		key := chain.NonceKey{31: 1}
		binary.BigEndian.PutUint32(key[8:], series)
		binary.BigEndian.PutUint32(key[16:], uint32(i))
		payments[i] = Pay(wallet.Dev(i%wallet.Devs), wallet.Tempo{
			NonceKey: key, Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, to, 1)},
		})
	}
	return payments, to
}

// Pay signs a Tempo transaction, filling in chain, gas and fees.
func Pay(key wallet.Key, t wallet.Tempo) Payment {
	const gwei = 1_000_000_000
	t.Chain, t.Gas, t.MaxFee, t.MaxPriorityFee = TempoChain, 1_000_000, 40*gwei, gwei
	raw := t.Sign(key)
	return Payment{Raw: raw, Hash: chain.Keccak(raw)}
}

// Balance asks a node for an account's balance of a TIP-20 token, in units.
func Balance(ctx context.Context, node string, token, account chain.Address) (uint64, error) {
	data := fmt.Sprintf("0x70a08231%064s", strings.TrimPrefix(account.String(), "0x")) // balanceOf(address)
	var answer string
	err := Call(ctx, node, &answer, "eth_call", map[string]string{"to": token.String(), "data": data}, "latest")
	if err != nil {
		return 0, err
	}
	n, ok := new(big.Int).SetString(answer, 0)
	if !ok || !n.IsUint64() {
		return 0, fmt.Errorf("balance %s is no number of units", answer)
	}
	return n.Uint64(), nil
}

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

// Payment is a signed transaction that moves units of a token, and its names.
type Payment struct {
	Raw  []byte
	Hash chain.Hash // as the chain calls it; here also the keccak of Raw
}

// Payments signs n independent transfers of one unit each to one account that
// nobody else pays. Each has a nonce key of its own, so none waits for another.
// series tells one load from another.
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

// Balance asks a node for an account's units of a TIP-20 token.
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

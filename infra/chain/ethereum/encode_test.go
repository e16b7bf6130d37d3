package ethereum_test

import (
	"bytes"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
)

// unsigned is a transaction without its signature.
func unsigned(s chain.Signed) chain.Unsigned {
	return chain.Unsigned{
		Type: s.Type, Chain: s.Chain, Nonce: s.Nonce, Gas: s.Gas,
		GasPrice: s.GasPrice, MaxFee: s.MaxFee, MaxPriorityFee: s.MaxPriorityFee, Calls: s.Calls,
	}
}

func drawNumber(t *rapid.T, name string) *uint256.Int {
	return new(uint256.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, name))
}

func drawUnsigned(t *rapid.T) chain.Unsigned {
	tx := chain.Unsigned{
		Type:  rapid.SampledFrom([]uint8{ethereum.Legacy, ethereum.DynamicFee}).Draw(t, "type"),
		Chain: chain.ID(rapid.Uint64Min(1).Draw(t, "chain")),
		Nonce: rapid.Uint64Max(1<<63).Draw(t, "nonce"),
		Gas:   rapid.Uint64Range(1_000_000, 1<<24).Draw(t, "gas"), // enough for any call drawn
		Calls: []chain.Call{{Value: drawNumber(t, "value"), Input: rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "input")}},
	}
	if rapid.Bool().Draw(t, "to somebody") {
		to := chain.Address(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "to"))
		tx.Calls[0].To = &to
	}
	if fee := drawNumber(t, "fee"); tx.Type == ethereum.Legacy {
		tx.GasPrice = fee
	} else {
		tx.MaxFee, tx.MaxPriorityFee = fee, new(uint256.Int).Rsh(fee, 1)
	}
	return tx
}

// theirs is the transaction in go-ethereum's type.
func theirs(tx chain.Unsigned) *types.Transaction {
	call, to := tx.Calls[0], (*common.Address)(tx.Calls[0].To)
	if tx.Type == ethereum.Legacy {
		inner := &types.LegacyTx{Nonce: tx.Nonce, GasPrice: tx.GasPrice.ToBig(), Gas: tx.Gas, Value: call.Value.ToBig(), Data: call.Input}
		inner.To = to
		return types.NewTx(inner)
	}
	inner := &types.DynamicFeeTx{
		ChainID: new(big.Int).SetUint64(uint64(tx.Chain)), Nonce: tx.Nonce, GasTipCap: tx.MaxPriorityFee.ToBig(),
		GasFeeCap: tx.MaxFee.ToBig(), Gas: tx.Gas, Value: call.Value.ToBig(), Data: call.Input,
	}
	inner.To = to
	return types.NewTx(inner)
}

// Encode writes the same bytes as go-ethereum, and our decoder reads them.
func TestEncode(t *testing.T) {
	key, err := crypto.ToECDSA(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	sender := chain.Address(crypto.PubkeyToAddress(key.PublicKey))
	rapid.Check(t, func(t *rapid.T) {
		tx := drawUnsigned(t)
		payload, err := ethereum.Payload(tx)
		if err != nil {
			t.Fatal(err)
		}
		digest := chain.Keccak(payload)
		signature, err := crypto.Sign(digest[:], key)
		if err != nil {
			t.Fatal(err)
		}
		signature[64] += rapid.SampledFrom([]byte{0, 27}).Draw(t, "v")
		raw, err := ethereum.Encode(tx, signature)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := types.SignTx(theirs(tx), types.LatestSignerForChainID(new(big.Int).SetUint64(uint64(tx.Chain))), key)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := signed.MarshalBinary(); err != nil || !bytes.Equal(raw, want) {
			t.Errorf("%x (%v), and go-ethereum writes %x", raw, err, want)
		}
		got, err := ethereum.Decode(raw)
		if err != nil || got.Sender != sender {
			t.Fatalf("read back: %s (%v), want %s", got.Sender, err, sender)
		}
		if diff := cmp.Diff(tx, unsigned(got), cmp.Comparer(bytes.Equal)); diff != "" {
			t.Errorf("read back (-written +read):\n%s", diff)
		}
	})
}

func TestEncodeRefuses(t *testing.T) {
	one := uint256.NewInt(1)
	for name, c := range map[string]struct {
		change    func(*chain.Unsigned)
		signature []byte
		fault     chain.Fault
	}{
		"type 1":         {func(tx *chain.Unsigned) { tx.Type = ethereum.AccessList }, make([]byte, 65), chain.FaultType},
		"Tempo's":        {func(tx *chain.Unsigned) { tx.Type = 0x76 }, make([]byte, 65), chain.FaultType},
		"two calls":      {func(tx *chain.Unsigned) { tx.Calls = make([]chain.Call, 2) }, make([]byte, 65), chain.FaultInvalid},
		"no call":        {func(tx *chain.Unsigned) { tx.Calls = nil }, make([]byte, 65), chain.FaultInvalid},
		"nonce key":      {func(tx *chain.Unsigned) { tx.NonceKey[0] = 1 }, make([]byte, 65), chain.FaultInvalid},
		"window":         {func(tx *chain.Unsigned) { tx.Window.Before = 1 }, make([]byte, 65), chain.FaultInvalid},
		"fee token":      {func(tx *chain.Unsigned) { tx.FeeToken = &chain.Address{} }, make([]byte, 65), chain.FaultInvalid},
		"sponsor":        {func(tx *chain.Unsigned) { tx.Sponsored = true }, make([]byte, 65), chain.FaultInvalid},
		"gas price":      {func(tx *chain.Unsigned) { tx.GasPrice = one }, make([]byte, 65), chain.FaultInvalid},
		"no max fee":     {func(tx *chain.Unsigned) { tx.MaxFee = nil }, make([]byte, 65), chain.FaultInvalid},
		"legacy's fees":  {func(tx *chain.Unsigned) { tx.Type = ethereum.Legacy }, make([]byte, 65), chain.FaultInvalid},
		"no signature":   {func(*chain.Unsigned) {}, nil, chain.FaultSignature},
		"P-256":          {func(*chain.Unsigned) {}, append([]byte{1}, make([]byte, 129)...), chain.FaultSignature},
		"v that is none": {func(*chain.Unsigned) {}, append(make([]byte, 64), 2), chain.FaultSignature},
	} {
		tx := chain.Unsigned{Type: ethereum.DynamicFee, Chain: 1, MaxFee: one, MaxPriorityFee: one, Calls: []chain.Call{{}}}
		c.change(&tx)
		raw, err := ethereum.Encode(tx, c.signature)
		var malformed *chain.Malformed
		if !errors.As(err, &malformed) || malformed.Fault != c.fault || raw != nil {
			t.Errorf("%s: %x (%v), want %s", name, raw, err, c.fault)
		}
	}
}

package wallet_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

func array[A ~[20]byte | ~[32]byte](t *rapid.T, name string) (a A) {
	switch a := any(&a).(type) {
	case *[32]byte:
		copy(a[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, name))
	case *chain.NonceKey:
		copy(a[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, name))
	case *chain.Address:
		copy(a[:], rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, name))
	}
	return a
}

func drawAddress(name string) *rapid.Generator[*chain.Address] {
	return rapid.Custom(func(t *rapid.T) *chain.Address {
		a := array[chain.Address](t, name)
		return &a
	})
}

func drawCall(t *rapid.T) chain.Call {
	return chain.Call{
		To:    drawAddress("to").Draw(t, "to"),
		Value: uint256.NewInt(rapid.Uint64().Draw(t, "value")),
		Input: rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "input"),
	}
}

func drawTempo(t *rapid.T) wallet.Tempo {
	after := rapid.Uint64Range(0, 1<<40).Draw(t, "after")
	maxFee := rapid.Uint64().Draw(t, "max fee")
	return wallet.Tempo{
		Chain:          chain.ID(rapid.Uint64Min(1).Draw(t, "chain")),
		MaxPriorityFee: rapid.Uint64Max(maxFee).Draw(t, "tip"),
		MaxFee:         maxFee,
		Gas:            rapid.Uint64().Draw(t, "gas"),
		Calls:          rapid.SliceOfN(rapid.Custom(drawCall), 1, 3).Draw(t, "calls"),
		NonceKey:       array[chain.NonceKey](t, "nonce key"),
		Nonce:          rapid.Uint64Max(1<<63).Draw(t, "nonce"),
		Window: chain.Window{
			After:  after,
			Before: rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(after+1, 1<<41)).Draw(t, "before"),
		},
		FeeToken: rapid.OneOf(rapid.Just[*chain.Address](nil), drawAddress("fee token")).Draw(t, "fee token"),
	}
}

// The service's decoder reads back the fields of transactions signed here.
func TestTempoIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tx := drawTempo(t)
		key, kind := drawKey(t)
		raw := tx.Sign(key)
		got, err := tempo.Decode(raw)
		if err != nil {
			t.Fatalf("%v in %x", err, raw)
		}
		want := chain.Signed{
			Chain: tx.Chain, Hash: chain.Keccak(raw), Type: tempo.Type,
			Sender: key.Address(), Signature: kind,
			FeeToken: tx.FeeToken, NonceKey: tx.NonceKey, Nonce: tx.Nonce, Window: tx.Window, Gas: tx.Gas,
			MaxFee: uint256.NewInt(tx.MaxFee), MaxPriorityFee: uint256.NewInt(tx.MaxPriorityFee),
			Calls: tx.Calls,
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Errorf("read back (-signed +read):\n%s", diff)
		}
		if !bytes.Equal(raw, tx.Sign(key)) {
			t.Error("signing twice gives two different transactions")
		}
	})
}

// drawKey draws a key of either kind. Nearly all 32-byte strings are keys.
func drawKey(t *rapid.T) (wallet.Key, chain.SignatureKind) {
	secret := array[[32]byte](t, "secret")
	secret[0] = 0x01 // neither zero nor above an order
	var key wallet.Key
	var err error
	kind := rapid.SampledFrom([]chain.SignatureKind{chain.Secp256k1, chain.P256}).Draw(t, "kind")
	if kind == chain.P256 {
		key, err = wallet.NewP256(secret)
	} else {
		key, err = wallet.NewSecp256k1(secret)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key, kind
}

func TestEthereumIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := wallet.Dev(rapid.IntRange(0, wallet.Devs-1).Draw(t, "account"))
		maxFee := rapid.Uint64().Draw(t, "max fee")
		tx := wallet.Ethereum{
			Chain:          chain.ID(rapid.Uint64Range(1, 1<<62).Draw(t, "chain")),
			MaxPriorityFee: rapid.Uint64Max(maxFee).Draw(t, "tip"),
			MaxFee:         maxFee,
			Gas:            rapid.Uint64Range(1_000_000, 1<<24).Draw(t, "gas"), // enough for any call drawn
			Nonce:          rapid.Uint64Max(1<<63).Draw(t, "nonce"),
			Call:           drawCall(t),
		}
		raw := tx.Sign(key)
		got, err := ethereum.Decode(raw)
		if err != nil {
			t.Fatalf("%v in %x", err, raw)
		}
		want := chain.Signed{
			Chain: tx.Chain, Hash: chain.Keccak(raw), Type: ethereum.DynamicFee,
			Sender: key.Address(), Signature: chain.Secp256k1, Nonce: tx.Nonce, Gas: tx.Gas,
			MaxFee: uint256.NewInt(tx.MaxFee), MaxPriorityFee: uint256.NewInt(tx.MaxPriorityFee),
			Calls: []chain.Call{tx.Call},
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Errorf("read back (-signed +read):\n%s", diff)
		}
	})
}

// The accounts equal those printed by anvil.
func TestDev(t *testing.T) {
	for i, want := range map[int]string{
		0: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
		1: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
		9: "0xa0ee7a142d267c1f36714e4a8f75612f20a79720",
	} {
		if got := wallet.Dev(i).Address().String(); got != want {
			t.Errorf("account %d is %s, want %s", i, got, want)
		}
	}
}

func TestKeysOutOfRangeAreRefused(t *testing.T) {
	for _, secret := range [][32]byte{{}, [32]byte(bytes.Repeat([]byte{0xff}, 32))} {
		if _, err := wallet.NewSecp256k1(secret); err == nil {
			t.Errorf("secp256k1 takes %x", secret)
		}
		if _, err := wallet.NewP256(secret); err == nil {
			t.Errorf("P-256 takes %x", secret)
		}
	}
}

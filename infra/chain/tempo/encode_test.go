package tempo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/ethereum/go-ethereum/rlp"
	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// unsigned is a transaction without its signatures.
func unsigned(s chain.Signed) chain.Unsigned {
	return chain.Unsigned{
		Type: s.Type, Chain: s.Chain, NonceKey: s.NonceKey, Nonce: s.Nonce, Gas: s.Gas,
		MaxFee: s.MaxFee, MaxPriorityFee: s.MaxPriorityFee,
		Calls: s.Calls, Window: s.Window, FeeToken: s.FeeToken, Sponsored: s.FeePayer != nil,
	}
}

// taken returns the sender's signature and the payer's as r s v. plain reports whether the
// transaction has only fields that Encode writes.
func taken(t *testing.T, raw []byte) (sender, payer []byte, plain bool) {
	t.Helper()
	var items []rlp.RawValue
	if err := rlp.DecodeBytes(raw[1:], &items); err != nil {
		t.Fatal(err)
	}
	if err := rlp.DecodeBytes(items[len(items)-1], &sender); err != nil {
		t.Fatal(err)
	}
	empty := rlp.RawValue{0xc0}
	plain = len(items) == 14 && bytes.Equal(items[5], empty) && bytes.Equal(items[12], empty)
	if items[11][0] >= 0xc0 {
		var vrs struct {
			V    uint64
			R, S *uint256.Int
		}
		if err := rlp.DecodeBytes(items[11], &vrs); err != nil {
			t.Fatal(err)
		}
		r, s := vrs.R.Bytes32(), vrs.S.Bytes32()
		payer = append(append(r[:], s[:]...), byte(vrs.V))
	}
	return sender, payer, plain
}

// Decoded and encoded again, every vector has the same bytes, and its payload is the payload
// that viem signed.
func TestEncodeVectors(t *testing.T) {
	var file struct {
		Vectors []struct {
			Name                       string
			SignHash, FeePayerSignHash *chain.Hash
		}
	}
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	seen, sponsored := 0, 0
	for i, v := range load(t).Vectors {
		signed, canonical, err := tempo.Canonical(v.bytes(t))
		if err != nil {
			continue
		}
		sender, payer, plain := taken(t, v.bytes(t))
		if !plain {
			continue
		}
		seen++
		tx := unsigned(signed)
		raw, err := tempo.Encode(tx, sender, payer)
		if err != nil || !bytes.Equal(raw, canonical) {
			t.Errorf("%s: %x (%v), want %x", v.Name, raw, err, canonical)
		}
		payload, err := tempo.Payload(tx)
		if want := file.Vectors[i].SignHash; err != nil || want != nil && chain.Keccak(payload) != *want {
			t.Errorf("%s: what is signed has the hash %s (%v), want %s", v.Name, chain.Keccak(payload), err, want)
		}
		if want := file.Vectors[i].FeePayerSignHash; want != nil {
			sponsored++
			payload, err := tempo.PayerPayload(tx, signed.Sender)
			if err != nil || chain.Keccak(payload) != *want {
				t.Errorf("%s: what the payer signs has the hash %s (%v), want %s", v.Name, chain.Keccak(payload), err, want)
			}
		}
	}
	if seen < 30 || sponsored < 3 {
		t.Errorf("only %d vectors, %d of them sponsored", seen, sponsored)
	}
}

// The decoder reads the encoded fields back.
func TestEncodeIsReadBack(t *testing.T) {
	var somebodys, payers []byte
	for _, v := range load(t).Vectors {
		if v.Name == "fee-payer" {
			somebodys, payers, _ = taken(t, v.bytes(t))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Custom(func(t *rapid.T) *uint256.Int {
			return new(uint256.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "number"))
		})
		address := rapid.Custom(func(t *rapid.T) *chain.Address {
			a := chain.Address(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "address"))
			return &a
		})
		maxFee, after := number.Draw(t, "max fee"), rapid.Uint64Max(1<<40).Draw(t, "after")
		tx := chain.Unsigned{
			Type: tempo.Type, Chain: chain.ID(rapid.Uint64Min(1).Draw(t, "chain")),
			NonceKey: chain.NonceKey(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "nonce key")),
			Nonce:    rapid.Uint64Max(1<<63).Draw(t, "nonce"), Gas: rapid.Uint64().Draw(t, "gas"),
			MaxFee: maxFee, MaxPriorityFee: new(uint256.Int).Rsh(maxFee, rapid.UintMax(128).Draw(t, "tip")),
			Calls: []chain.Call{{To: address.Draw(t, "to"), Value: number.Draw(t, "value"), Input: rapid.SliceOf(rapid.Byte()).Draw(t, "input")}},
			Window: chain.Window{
				After:  after,
				Before: rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Min(after+1)).Draw(t, "before"),
			},
			FeeToken:  rapid.OneOf(rapid.Just((*chain.Address)(nil)), address).Draw(t, "fee token"),
			Sponsored: rapid.Bool().Draw(t, "sponsored"),
		}
		payer := payers
		if !tx.Sponsored {
			payer = nil
		}
		raw, err := tempo.Encode(tx, somebodys, payer) // recovers to some account; only the fields are compared
		if err != nil {
			t.Fatal(err)
		}
		got, err := tempo.Decode(raw)
		if err != nil {
			var malformed *chain.Malformed
			if errors.As(err, &malformed) && (malformed.Fault == chain.FaultSignature || malformed.Fault == chain.FaultFeePayer) {
				return // no key matches the random signature
			}
			t.Fatal(err)
		}
		if diff := cmp.Diff(tx, unsigned(got), cmp.Comparer(bytes.Equal)); diff != "" {
			t.Errorf("read back (-written +read):\n%s", diff)
		}
	})
}

func TestEncodeRefuses(t *testing.T) {
	wide := new(uint256.Int).Lsh(uint256.NewInt(1), 128)
	secp, p256 := make([]byte, 65), append([]byte{1}, make([]byte, 129)...)
	for name, c := range map[string]struct {
		change        func(*chain.Unsigned)
		sender, payer []byte
		fault         chain.Fault
	}{
		"another type":             {func(tx *chain.Unsigned) { tx.Type = 2 }, secp, nil, chain.FaultType},
		"gas price":                {func(tx *chain.Unsigned) { tx.GasPrice = wide }, secp, nil, chain.FaultInvalid},
		"no fee":                   {func(tx *chain.Unsigned) { tx.MaxFee = nil }, secp, nil, chain.FaultInvalid},
		"no tip":                   {func(tx *chain.Unsigned) { tx.MaxPriorityFee = nil }, secp, nil, chain.FaultInvalid},
		"wide fee":                 {func(tx *chain.Unsigned) { tx.MaxFee = wide }, secp, nil, chain.FaultOverflow},
		"no signature":             {func(*chain.Unsigned) {}, nil, nil, chain.FaultSignature},
		"payer of what is not":     {func(*chain.Unsigned) {}, secp, secp, chain.FaultFeePayer},
		"sponsored by nobody":      {func(tx *chain.Unsigned) { tx.Sponsored = true }, secp, nil, chain.FaultFeePayer},
		"sponsored by a P-256 key": {func(tx *chain.Unsigned) { tx.Sponsored = true }, secp, p256, chain.FaultFeePayer},
	} {
		tx := chain.Unsigned{Type: tempo.Type, Chain: 1, MaxFee: uint256.NewInt(1), MaxPriorityFee: uint256.NewInt(1), Calls: []chain.Call{{}}}
		c.change(&tx)
		raw, err := tempo.Encode(tx, c.sender, c.payer)
		var malformed *chain.Malformed
		if !errors.As(err, &malformed) || malformed.Fault != c.fault || raw != nil {
			t.Errorf("%s: %x (%v), want %s", name, raw, err, c.fault)
		}
	}
	if _, err := tempo.PayerPayload(chain.Unsigned{Type: tempo.Type}, chain.Address{}); err == nil {
		t.Error("a payer signs what is not sponsored")
	}
	kept := bytes.Clone(secp)
	tx := chain.Unsigned{Type: tempo.Type, MaxFee: uint256.NewInt(1), MaxPriorityFee: uint256.NewInt(1)}
	if _, err := tempo.Encode(tx, kept, nil); err != nil || !bytes.Equal(kept, secp) {
		t.Errorf("the signature handed in has become %x (%v)", kept, err)
	}
}

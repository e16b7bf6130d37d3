package ethereum_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
)

// vector is an Ethereum transaction among Tempo's test vectors.
type vector struct {
	Name, Expect, TxType, Nonce, Raw string
	ChainID                          chain.ID
	Sender                           *chain.Address
	Hash                             *chain.Hash
	raw                              []byte
}

func vectors(t testing.TB) (ours []vector) {
	t.Helper()
	b, err := os.ReadFile("../tempo/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, v := range file.Vectors {
		if v.raw, err = hex.DecodeString(strings.TrimPrefix(v.Raw, "0x")); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(v.TxType, "0x0") {
			ours = append(ours, v)
		}
	}
	return ours
}

func TestVectors(t *testing.T) {
	faults := map[string]chain.Fault{
		"eth-1559-high-s": chain.FaultSignature,
		"eth-4844":        chain.FaultType,
		"eth-pre155":      chain.FaultUnprotected,
	}
	valid, invalid := 0, 0
	for _, v := range vectors(t) {
		if v.Expect != "valid" {
			invalid++
			t.Run(v.Name, func(t *testing.T) { checkFault(t, v.raw, faults[v.Name]) })
			continue
		}
		valid++
		t.Run(v.Name, func(t *testing.T) {
			got, err := ethereum.Decode(v.raw)
			if err != nil {
				t.Fatal(err)
			}
			if got.Chain != v.ChainID || got.Hash != *v.Hash || got.Sender != *v.Sender || !got.NonceKey.IsZero() {
				t.Errorf("chain %s, hash %s, sender %s, nonce key %s", got.Chain, got.Hash, got.Sender, got.NonceKey)
			}
		})
	}
	if valid != 4 || invalid != len(faults) {
		t.Errorf("saw %d valid and %d invalid vectors, want 4 and %d", valid, invalid, len(faults))
	}
}

package tempo_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// BenchmarkDecode reads a transaction and verifies its signatures. For secp256k1 its lower
// bound is BenchmarkEcrecover, the recovery alone.
func BenchmarkDecode(b *testing.B) {
	byName := map[string][]byte{}
	for _, v := range load(b).Vectors {
		byName[v.Name] = v.bytes(b)
	}
	for _, name := range []string{"secp-basic", "fee-payer", "keychain-v2-secp", "p256", "webauthn"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tempo.Decode(byName[name]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEcrecover(b *testing.B) {
	digest := chain.Keccak([]byte("anything"))
	sig, err := crypto.Sign(digest[:], testKey(b))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := crypto.Ecrecover(digest[:], sig); err != nil {
			b.Fatal(err)
		}
	}
}

package ethereum_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
)

// BenchmarkDecode reads a type 2 transaction and recovers its sender. Its lower bound is
// BenchmarkEcrecover, the recovery alone.
func BenchmarkDecode(b *testing.B) {
	raw := sign(b, dynamic())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ethereum.Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEcrecover(b *testing.B) {
	digest := crypto.Keccak256([]byte("anything"))
	sig, err := crypto.Sign(digest, testKey(b))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := crypto.Ecrecover(digest, sig); err != nil {
			b.Fatal(err)
		}
	}
}

package keys_test

import (
	"log/slog"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

// BenchmarkSign measures one verified signature, with a key in memory and over HTTP.
func BenchmarkSign(b *testing.B) {
	ones, err := keys.Environment([]string{"RELAYER_PRIVATE_KEY_0=" + secretA}, true, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	server := keystest.Serve(b, keyOf(chain.Secp256k1, secretA))
	r, err := keys.NewRemote(keys.RemoteSettings{URL: server.URL, Timeout: keys.MaxRetryAfter, Connections: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.Close)
	far, err := r.Signers(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for name, s := range map[string]*keys.Signer{"memory": ones[0], "remote": far[0]} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Sign(b.Context(), []byte("payload")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package rest

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// BenchmarkAdmit measures the cost of a request before its endpoint is called.
func BenchmarkAdmit(b *testing.B) {
	token, id, digest, err := access.NewToken(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	keys := access.State{Keys: map[access.KeyID]access.Entry{id: {Key: access.Key{ID: id, Digest: digest, Scopes: access.Scopes()}}}}
	for name, c := range map[string]Config{
		"unlimited": {},
		"address":   {Rates: Rates{Address: Rate{1_000_000, 10_000_000}}},
		"key":       {Rates: Rates{Key: Rate{1_000_000, 10_000_000}}, Access: Access{Keys: func() access.State { return keys }}},
	} {
		c.Now = time.Now
		a := newAPI(c)
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/transactions", nil)
		if name == "key" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				w, on := httptest.NewRecorder(), &exchange{api: a}
				for pb.Next() {
					on.paid = 0
					if err := a.admit(w, r, on, access.Submit); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

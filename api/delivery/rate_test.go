package delivery

import (
	"net/http"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
)

// Row 50: over the rate the answer is 429 with Retry-After, and has no effect.
func TestRateLimit(t *testing.T) {
	s := newStack(t, func(c *Config) { c.Rates.Address = rest.Rate{PerSecond: 2, Burst: 5} })
	key := newKey(t)
	raws := make([][]byte, 4)
	for i := range raws {
		raws[i] = signed(t, key, testChain, uint64(i))
	}
	want := func(res response, status int, quota string) {
		t.Helper()
		if got := res.header.Get("RateLimit"); res.status != status || got != quota || res.header.Get("RateLimit-Policy") != `"address";q=5;w=3` {
			t.Errorf("answered %v, RateLimit %s, policy %s; want %d, %s", res, got, res.header.Get("RateLimit-Policy"), status, quota)
		}
	}
	want(s.get("/health"), 200, `"address";r=4;t=1`)
	batch := func() response { return s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, raws...)) }
	want(batch(), 200, `"address";r=0;t=3`) // a batch costs its items
	recorded := len(s.recorded())

	res := batch()
	want(res, 429, `"address";r=0;t=1`)
	if p := wantProblem(t, "over the rate", res, 429, rest.ErrRateLimited); !p.Retryable || res.header.Get("Retry-After") != "1" {
		t.Errorf("retryable %v, Retry-After %s", p.Retryable, res.header.Get("Retry-After"))
	}
	want(s.ask("/nothing"), 429, `"address";r=0;t=1`) // unknown paths cost too
	for range 10 {
		if res := s.get("/readyz"); res.status != 200 || res.header.Get("RateLimit") != "" {
			t.Errorf("probes are limited: %v", res)
		}
	}

	s.elapse(500 * time.Millisecond)
	want(s.get("/v1/transactions"), 200, `"address";r=0;t=3`)
	s.elapse(time.Second)
	// One unit is left for the request, and not enough for its items.
	want(batch(), 429, `"address";r=1;t=1`)
	if n := len(s.recorded()); n != recorded {
		t.Errorf("%d events were recorded by what was refused", n-recorded)
	}
	s.elapse(time.Hour)
	want(batch(), 200, `"address";r=1;t=2`)

	s.elapse(time.Hour)
	six := append(raws, signed(t, key, testChain, 9), signed(t, key, testChain, 10))
	wantProblem(t, "a batch that no rate allows", s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, six...)), 413, rest.ErrBatchTooLarge)
}

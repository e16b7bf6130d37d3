package delivery

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
)

// freely allows every charge.
func freely(int) error { return nil }

// Attack 5, REST: a batch with too many items is refused by its count, and an unaffordable
// batch by its charge, before an item is decoded.
func TestBatchIsCountedBeforeItIsDecoded(t *testing.T) {
	raw := `"0x` + strings.Repeat("ab", 400) + `"`
	limits := rest.DefaultLimits()
	body := func(items int) []byte {
		return []byte(`{"chainId":1,"transactions":[` + strings.Repeat(raw+",", items-1) + raw + `]}`)
	}
	for name, test := range map[string]struct {
		items, charged int
		want           error
	}{
		"too many":   {limits.BatchItems + 1, 0, rest.ErrBatchTooLarge},
		"not paid":   {limits.BatchItems, limits.BatchItems, rest.ErrRateLimited},
		"not paid 2": {500, 500, rest.ErrRateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			text, charged := body(test.items), 0
			read := func() {
				charged = 0
				_, err := readSubmission(text, limits, func(n int) error {
					charged += n
					return rest.ErrRateLimited
				})
				if !errors.Is(err, test.want) || charged != test.charged {
					t.Fatalf("%v, %d charged", err, charged)
				}
			}
			// Decoding an item takes more than one allocation.
			if allocs := testing.AllocsPerRun(5, read); allocs > 30 {
				t.Errorf("%.0f allocations", allocs)
			}
		})
	}
}

// A large body is charged by its bytes, once. The items count as well, and the larger counts.
// The charge never exceeds the burst.
func TestBodyIsChargedByItsBytes(t *testing.T) {
	s := newStack(t, func(c *Config) { c.Rates.Address = rest.Rate{PerSecond: 1, Burst: 40} })
	of := func(bytes int) []byte {
		before, after := fmt.Sprintf(`{"chainId":%d,"transactions":["0x`, testChain), `"]}`
		return []byte(before + strings.Repeat("z", bytes-len(before)-len(after)) + after)
	}
	for _, c := range []struct {
		bytes, status int
		left          string
	}{
		{100, 200, `"address";r=39;`},
		{bodyUnit, 200, `"address";r=38;`},
		{10 * bodyUnit, 200, `"address";r=28;`},
		{40 * bodyUnit, 429, `"address";r=27;`}, // the request itself was charged
	} {
		res := s.do("POST", "/v1/transactions", of(c.bytes))
		if left := res.header.Get("RateLimit"); res.status != c.status || !strings.HasPrefix(left, c.left) {
			t.Errorf("%d bytes: %d, left %s, want %d and %s", c.bytes, res.status, left, c.status, c.left)
		}
	}
	s.elapse(time.Hour)
	if res := s.do("POST", "/v1/transactions", of(60*bodyUnit)); res.status != 200 || !strings.HasPrefix(res.header.Get("RateLimit"), `"address";r=0;`) {
		t.Errorf("the largest body: %d, %s", res.status, res.header.Get("RateLimit"))
	}
}

package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// countsOf is n calls for the next nonce of an account.
func countsOf(account chain.Address, n int) string {
	one := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["%s","pending"]}`, account)
	if n == 1 {
		return one
	}
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]"
}

// One client's calls for the next nonce read the due queue one after the other, a bounded number
// of them waits, and another client's call is answered meanwhile.
func TestCountsTakePlaces(t *testing.T) {
	const calls = 400
	flooded, other := chain.Address{1}, chain.Address{2}
	var reads, reading, most atomic.Int64
	end := make(chan struct{}) // the first read ends
	s := newStack(t, func(c *Config, public *delivery.Config) {
		public.Rates.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.NextFree = func(ctx context.Context, sequence chain.Sequence, from uint64, _ []string, place rest.Place) (uint64, error) {
			leave, err := place(ctx)
			if err != nil {
				return 0, err
			}
			defer leave()
			if sequence.Sender == other {
				return from, nil
			}
			reads.Add(1)
			n := reading.Add(1)
			defer reading.Add(-1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			if n > 1 {
				return from, nil
			}
			select {
			case <-end:
			case <-ctx.Done():
			}
			return from, nil
		}
	})
	s.node.says("eth_getTransactionCount", `"0x7"`)
	answers := make(chan string, calls)
	for range calls {
		go func() {
			status, answer, _, err := s.send("/rpc", countsOf(flooded, 1), "X-Forwarded-For", "192.0.2.1")
			answers <- fmt.Sprint(status, answer, err)
		}()
	}
	var counted, refused int
	count := func(answer string) {
		t.Helper()
		switch {
		case strings.Contains(answer, `"result":"0x7"`):
			counted++
		case strings.Contains(answer, `"code":-32005`) && strings.Contains(answer, `"code":"rate-limited"`):
			refused++
		default:
			t.Errorf("answered %s", answer)
		}
	}
	count(<-answers) // while the first read is going on
	if counted > 0 {
		t.Error("a call is answered during another call's read")
	}
	if status, answer, _ := s.post("/rpc", countsOf(other, 1), "X-Forwarded-For", "192.0.2.2"); status != http.StatusOK || !strings.Contains(answer, `"result":"0x7"`) {
		t.Errorf("another client: %d %s", status, answer)
	}
	close(end)
	for range calls - 1 {
		count(<-answers)
	}
	if n := most.Load(); n != 1 {
		t.Errorf("%d calls of one client read the due queue at once", n)
	}
	if n := int(reads.Load()); n != counted {
		t.Errorf("%d reads for %d answers", n, counted)
	}
}

// A call for the next nonce pays for the nonces that it passes, after the fact, and each call of
// a batch by itself.
func TestCountsAreCharged(t *testing.T) {
	const burst = 200
	var hours atomic.Int64
	var passes atomic.Uint64
	var broken atomic.Bool
	s := newStack(t, func(c *Config, public *delivery.Config) {
		public.Rates.Address = rest.Rate{PerSecond: 1, Burst: burst}
		public.Now = func() time.Time {
			return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC).Add(time.Duration(hours.Load()) * time.Hour)
		}
		c.NextFree = func(_ context.Context, _ chain.Sequence, from uint64, _ []string, _ rest.Place) (uint64, error) {
			if broken.Load() {
				return from + passes.Load(), errors.New("broken")
			}
			return from + passes.Load(), nil
		}
	})
	s.node.says("eth_getTransactionCount", `"0x5"`)
	for _, c := range []struct {
		passes       uint64
		calls, units int
		broken       bool
	}{
		{0, 1, 1, false},
		{1, 1, 1, false},
		{100, 1, 1, false},
		{101, 1, 2, false},
		{10_000, 1, 100, false},
		{1050, 3, 33, false},
		{250, 1, 3, true},
		{1 << 63, 1, burst, false},
	} {
		hours.Add(1)
		passes.Store(c.passes)
		broken.Store(c.broken)
		status, answer, header := s.post("/rpc", countsOf(chain.Address{1}, c.calls))
		if got, want := strings.Count(answer, `"result":"0x`) > 0, !c.broken; status != http.StatusOK || got != want {
			t.Errorf("%+v: %d %s", c, status, answer)
		}
		if got, want := header.Get("RateLimit"), fmt.Sprintf(`"address";r=%d;t=%d`, burst-c.units, c.units); got != want {
			t.Errorf("%+v: RateLimit %s, want %s", c, got, want)
		}
	}
	hours.Add(1)
	passes.Store(10_000)
	s.post("/rpc", countsOf(chain.Address{1}, 3)) // more than the burst
	if status, _, header := s.post("/rpc", countsOf(chain.Address{1}, 1)); status != http.StatusTooManyRequests || header.Get("Retry-After") != fmt.Sprint(300-burst+1) {
		t.Errorf("the next request: %d, Retry-After %s", status, header.Get("Retry-After"))
	}
}

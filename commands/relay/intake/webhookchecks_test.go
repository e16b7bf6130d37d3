package intake_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// resolver is a guard whose look-ups wait for an answer. A URL names its zone: the last label but
// one of its host.
type resolver struct {
	mu      sync.Mutex
	running map[string]int // look-ups of each zone that run
	all     int            // look-ups so far
	answer  chan error     // answers one look-up; closed: none waits any longer
}

func newResolver() *resolver {
	return &resolver{running: map[string]int{}, answer: make(chan error)}
}

func (r *resolver) Check(url string) error {
	if strings.Contains(url, "forbidden") {
		return errors.New("the URL may not be called")
	}
	return nil
}

func (r *resolver) CheckNow(ctx context.Context, url string) error {
	labels := strings.Split(url, ".")
	zone := labels[len(labels)-2]
	r.count(zone, 1)
	defer r.count(zone, -1)
	select {
	case err := <-r.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *resolver) count(zone string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[zone] += n; r.running[zone] == 0 {
		delete(r.running, zone)
	}
	r.all += max(n, 0)
}

// runs expects the look-ups that run, by zone.
func (r *resolver) runs(t *testing.T, want map[string]int) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !maps.Equal(r.running, want) {
		t.Errorf("look-ups that run: %v, want %v", r.running, want)
	}
}

// checks are checks of clients' URLs, with their results.
type checks struct {
	*intake.WebhookChecks
	mu      sync.Mutex
	results map[string][]error
}

func (c *checks) start(ctx context.Context, client, url string) {
	go func() {
		err := c.Check(ctx, client, "webhook 0: ", url)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.results[client] = append(c.results[client], err)
	}()
}

// want expects a client's results.
func (c *checks) want(t *testing.T, client string, n int, ok func(error) bool) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.results[client]) != n {
		t.Errorf("%d checks of %s have ended, want %d", len(c.results[client]), client, n)
	}
	for _, err := range c.results[client] {
		if !ok(err) {
			t.Errorf("%s: %v", client, err)
		}
	}
}

func allowed(err error) bool { return err == nil }

// withResolver runs a test of checks whose look-ups wait. At its end all are answered.
func withResolver(t *testing.T, test func(t *testing.T, r *resolver, c *checks)) {
	synctest.Test(t, func(t *testing.T) {
		r := newResolver()
		c := &checks{WebhookChecks: intake.NewWebhookChecks(r), results: map[string][]error{}}
		test(t, r, c)
		close(r.answer)
		r.runs(t, map[string]int{})
	})
}

// One client's URLs, each at another host whose name servers are silent, hold eight look-ups.
// Another client's look-up runs at once, and when all 64 are taken it is the next to run.
func TestLookUpsTakeTurns(t *testing.T) {
	const all, share = 64, 8
	withResolver(t, func(t *testing.T, r *resolver, c *checks) {
		ctx, end := context.WithCancel(t.Context())
		for i := range 1000 {
			c.start(ctx, "flood", fmt.Sprintf("https://host-%d.flood.example/", i))
		}
		r.runs(t, map[string]int{"flood": share})
		c.start(t.Context(), "shop", "https://hooks.shop.example/")
		r.runs(t, map[string]int{"flood": share, "shop": 1})

		want := map[string]int{"flood": share, "shop": 1}
		for n := share + 1; n < all; n++ {
			zone := fmt.Sprint("crowd-", n/share)
			c.start(t.Context(), zone, fmt.Sprintf("https://host-%d.%s.example/", n, zone))
			want[zone]++
		}
		r.runs(t, want) // all places are taken
		c.start(t.Context(), "bank", "https://hooks.bank.example/")
		r.runs(t, want)
		end() // the flood's requests
		want["bank"] = 1
		delete(want, "flood")
		r.runs(t, want)
		c.want(t, "flood", 1000, func(err error) bool { return errors.Is(err, context.Canceled) })
	})
}

// A free place goes to a client without look-ups before a client that has some.
func TestLookUpsOfTheFewestGoFirst(t *testing.T) {
	const all, share = 64, 8
	withResolver(t, func(t *testing.T, r *resolver, c *checks) {
		want := map[string]int{}
		for n := range all {
			zone := fmt.Sprint("crowd-", n/share)
			c.start(t.Context(), zone, fmt.Sprintf("https://host-%d.%s.example/", n, zone))
			c.start(t.Context(), zone, fmt.Sprintf("https://more-%d.%s.example/", n, zone))
			want[zone] = share
		}
		r.runs(t, want)
		c.start(t.Context(), "shop", "https://hooks.shop.example/")
		r.runs(t, want)
		r.answer <- nil
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.running["shop"] != 1 {
			t.Errorf("look-ups that run: %v, none of the shop's", r.running)
		}
	})
}

// A client's checks of one origin share a look-up, and its result. Another client's share none
// of it. When the request that runs it ends, another one runs it.
func TestLookUpsAreShared(t *testing.T) {
	withResolver(t, func(t *testing.T, r *resolver, c *checks) {
		leading, end := context.WithCancel(t.Context())
		c.start(leading, "shop", "https://hooks.shop.example/leading")
		r.runs(t, map[string]int{"shop": 1})
		for i := range 100 {
			c.start(t.Context(), "shop", fmt.Sprintf("https://hooks.shop.example/%d", i))
		}
		r.runs(t, map[string]int{"shop": 1})
		c.start(t.Context(), "other", "https://hooks.shop.example/")
		r.runs(t, map[string]int{"shop": 2})
		end()
		c.want(t, "shop", 1, func(err error) bool { return errors.Is(err, context.Canceled) })
		r.runs(t, map[string]int{"shop": 2})
		before := r.all
		r.answer <- nil
		r.answer <- nil
		c.want(t, "other", 1, allowed)
		c.want(t, "shop", 101, func(err error) bool { return err == nil || errors.Is(err, context.Canceled) })
		if r.all != before {
			t.Errorf("%d more look-ups", r.all-before)
		}
	})
}

// A URL is judged by itself before its host is looked up, and a failed look-up is no refusal.
func TestWebhookChecks(t *testing.T) {
	withResolver(t, func(t *testing.T, r *resolver, c *checks) {
		err := c.Check(t.Context(), "shop", "webhook 3: ", "https://hooks.shop.example/forbidden")
		if !errors.Is(err, intent.ErrWebhookURL) || !strings.Contains(err.Error(), "webhook 3: ") || r.all != 0 {
			t.Errorf("%v, after %d look-ups", err, r.all)
		}
		for client, tt := range map[string]struct {
			answer error
			want   func(error) bool
		}{
			"away": {&net.DNSError{IsTimeout: true}, func(err error) bool {
				return err != nil && !errors.Is(err, intent.ErrWebhookURL)
			}},
			"inside": {errors.New("an address may not be called"), func(err error) bool { return errors.Is(err, intent.ErrWebhookURL) }},
			"good":   {nil, allowed},
		} {
			for range 2 {
				c.start(t.Context(), client, "https://hooks.shop.example/")
			}
			r.runs(t, map[string]int{"shop": 1})
			r.answer <- tt.answer
			c.want(t, client, 2, tt.want)
		}
	})
}

package rpc

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// await fails the test if no signal arrives in time.
func await(t *testing.T, signals <-chan struct{}, why string) {
	t.Helper()
	select {
	case _, open := <-signals:
		if !open {
			t.Fatalf("closed: %s", why)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("no signal: %s", why)
	}
}

// heard mines until a signal arrives. The number of signals says nothing, as unread signals
// merge into one.
func heard(t *testing.T, c *chaintest.Chain, signals <-chan struct{}) {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		mine(t, c)
		select {
		case <-signals:
			return
		case <-time.After(20 * time.Millisecond): // not subscribed yet
		case <-deadline:
			t.Fatal("no signal of a block")
		}
	}
}

// silent fails the test if signals do not stop.
func silent(t *testing.T, signals <-chan struct{}) {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		select {
		case <-signals: // of an earlier block
		case <-time.After(50 * time.Millisecond):
			return
		case <-deadline:
			t.Fatal("signals without end")
		}
	}
}

func drained(t *testing.T, signals <-chan struct{}) {
	t.Helper()
	for {
		select {
		case _, open := <-signals:
			if !open {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the channel stays open")
		}
	}
}

// never is an interval longer than any test.
func never(c *Config) { c.Poll, c.PollSubscribed, c.DeriveWebSocket = time.Hour, time.Hour, true }

func TestHeadsBySubscription(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	p := open(t, never, serve(t, c.Node("a")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	signals := p.Reader().Heads(ctx)
	await(t, signals, "at the start")
	heard(t, c, signals)
	for range 3 {
		silent(t, signals)
		mine(t, c)
		await(t, signals, "a block")
	}
	cancel()
	drained(t, signals)
}

func TestHeadsByPolling(t *testing.T) {
	n := newChain(t, chaintest.Rules{}).Node("a")
	n.Set(chaintest.Faults{NoSubscriptions: true})
	for name, derive := range map[string]bool{"no WebSocket": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			p := open(t, func(c *Config) { c.Poll, c.DeriveWebSocket = 10*time.Millisecond, derive }, serve(t, n))
			signals := p.Reader().Heads(t.Context())
			for range 5 {
				await(t, signals, "polling")
			}
			p.Close()
			drained(t, signals)
		})
	}
}

func TestHeadsPollBeneathASubscription(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	p := open(t, func(c *Config) {
		c.Poll, c.PollSubscribed, c.DeriveWebSocket = time.Hour, 20*time.Millisecond, true
	}, serve(t, c.Node("a")))
	signals := p.Reader().Heads(t.Context())
	for range 5 { // signals arrive without blocks
		await(t, signals, "polling")
	}
}

func TestHeadsReconnect(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	node := c.Node("a")
	var connections atomic.Int32
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" || connections.Add(1) > 2 {
			node.ServeHTTP(w, r)
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		conn.Read(r.Context()) //nolint:errcheck // the subscription, which is then cut
		conn.CloseNow()        //nolint:errcheck // on purpose
	}))
	p := open(t, never, url)
	signals := p.Reader().Heads(t.Context())
	for connections.Load() < 3 {
		await(t, signals, "each loss is a signal, as blocks may have been missed")
	}
	for range 3 {
		mine(t, c)
		await(t, signals, "a block, or the subscription at last")
	}
}

func TestHeadsAreCoalesced(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	p := open(t, never, serve(t, c.Node("a")))
	signals := p.Reader().Heads(t.Context())
	await(t, signals, "at the start")
	for range 10 {
		mine(t, c)
	}
	await(t, signals, "blocks, or the subscription")
	// The number of merged signals is not fixed, but a slow reader does not get one per block.
	if len(signals) > 1 || cap(signals) != 1 {
		t.Errorf("%d signals wait", len(signals))
	}
}

func TestHeadsFollowTheReader(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	moved := make(chan struct{}, 1)
	b := c.Node("b")
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			moved <- struct{}{}
		}
		b.ServeHTTP(w, r)
	})
	p := open(t, never, serve(t, c.Node("a")), serve(t, next))
	signals := p.Reader().Heads(t.Context())
	await(t, signals, "at the start")
	heard(t, c, signals)
	silent(t, signals)
	before := p.reader()
	for range 3 {
		p.blame(before, context.DeadlineExceeded)
	}
	mine(t, c) // the old subscription sends once more and is left
	if p.subscribable() == before {
		t.Fatal("still reading from the endpoint that fails")
	}
	await(t, moved, "a subscription at the other")
	heard(t, c, signals)
	for range 3 {
		silent(t, signals)
		mine(t, c)
		await(t, signals, "the new subscription")
	}
}

func TestSubscriptionErrorsShowNoSecrets(t *testing.T) {
	const secret = "s3cr3t-api-key"
	p := open(t, func(c *Config) {
		c.Endpoints[0].WebSocket = "ws://127.0.0.1:1/" + secret
	}, serve(t, newChain(t, chaintest.Rules{}).Node("a")))
	_, err := p.endpoints[0].dial(t.Context())
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("error %v", err)
	}
}

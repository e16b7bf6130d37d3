package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// lookups are the reads for one client's request about a transaction in block b.
func lookups(c *ClientReader, b chain.Block, hash chain.Hash) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Head": func(ctx context.Context) error { _, err := c.Head(ctx); return err },
		"Nonces": func(ctx context.Context) error {
			_, err := c.Nonces(ctx, b, []chain.Sequence{{Chain: id, Sender: alice, Key: key5}})
			return err
		},
		"FindReceipt": func(ctx context.Context) error { _, err := c.FindReceipt(ctx, hash, b); return err },
		"Receipts":    func(ctx context.Context) error { _, err := c.Receipts(ctx, b, []chain.Hash{hash}); return err },
		"BlockAt":     func(ctx context.Context) error { _, _, err := c.BlockAt(ctx, b.Number); return err },
		"AgreedNonce": func(ctx context.Context) error {
			_, err := c.AgreedNonce(ctx, b, chain.Sequence{Chain: id, Sender: alice, Key: key5})
			return err
		},
		"Shown": func(ctx context.Context) error { return c.Shown(ctx, b) },
	}
}

// mined returns a chain with one transaction of alice, in the newest block.
func mined(t *testing.T) (*chaintest.Chain, chain.Block, chain.Hash) {
	t.Helper()
	c := newChain(t, chaintest.Rules{})
	raw, hash := plain(alice, key5, 0)
	return c, mine(t, c, raw), hash
}

// Nodes ask for a pause of five minutes while they are read for one client's request. This
// client's reads wait. Other clients' reads, the service's own reads and broadcasts go on.
func TestClientReadsPauseTheClientAlone(t *testing.T) {
	for what := range lookups(nil, chain.Block{}, chain.Hash{}) {
		t.Run(what, func(t *testing.T) {
			c, b, hash := mined(t)
			clock := newTimer()
			var urls []string
			var gateways []*gateway
			for _, name := range []string{"a", "b"} {
				g := &gateway{node: c.Node(name)}
				gateways, urls = append(gateways, g), append(urls, serve(t, g))
			}
			p := open(t, func(c *Config) { c.Now = clock.now }, urls...)
			for _, g := range gateways {
				g.misbehave("", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
					w.Header().Set("Retry-After", "300")
					w.WriteHeader(http.StatusTooManyRequests)
				})
			}
			r, reading := p.Reader(), p.reader()
			mallory := lookups(r.OnBehalf("mallory"), b, hash)[what]
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := mallory(ctx); err == nil {
				t.Fatal("no node refuses the read")
			}
			for _, g := range gateways {
				g.misbehave("", nil)
			}
			for _, s := range p.Status() {
				if s.State != Healthy || s.Failures != 0 || s.Budget.Pause != 0 {
					t.Errorf("%s: %s, %g failures, paused for %s", s.Name, s.State, s.Failures, s.Budget.Pause)
				}
			}
			if p.reader() != reading {
				t.Error("the service's own reads have moved")
			}
			if _, err := r.Head(ctx); err != nil {
				t.Errorf("own read: %v", err)
			}
			raw, sent := plain(bob, key5, 0)
			got := p.Send(ctx, raw, sent, 0, tx.Sending{})
			if !slices.ContainsFunc(got, func(a tx.Answer) bool { return a.Class == tx.Taken || a.Class == tx.Known }) {
				t.Errorf("broadcast: %+v", got)
			}
			if err := lookups(r.OnBehalf("bob"), b, hash)[what](ctx); err != nil {
				t.Errorf("another client: %v", err)
			}
			if err := mallory(ctx); err == nil {
				t.Error("the client is served in the pause")
			}
			clock.advance(pauseMax)
			if err := mallory(ctx); err != nil {
				t.Errorf("after the pause: %v", err)
			}
		})
	}
}

// One client's reads get no more calls of an endpoint's day than they leave for other clients.
// The service's own reads and broadcasts keep their half.
func TestClientReadsLeaveTheDay(t *testing.T) {
	const daily = 100
	for what := range lookups(nil, chain.Block{}, chain.Hash{}) {
		if what == "Shown" {
			continue // with one endpoint it asks nobody
		}
		t.Run(what, func(t *testing.T) {
			c, b, hash := mined(t)
			clock := newTimer()
			p := open(t, func(c *Config) {
				c.Now, c.Endpoints[0].Budget = clock.now, Budget{Daily: daily}
			}, serve(t, c.Node("a")))
			r := p.Reader()
			for n := range 2 * daily {
				// Each at another block, as if the chain went on: nonces at one block are read once.
				at := b
				at.Hash[0] ^= byte(n + 1)
				_ = lookups(r.OnBehalf("mallory"), map[bool]chain.Block{true: at, false: b}[what == "Nonces"], hash)[what](t.Context())
			}
			if left := p.Status()[0].Budget.Today; left < daily-daily/4-4 {
				t.Errorf("%d calls of %d are left", left, daily)
			}
			if err := lookups(r.OnBehalf("bob"), b, hash)[what](t.Context()); err != nil {
				t.Errorf("another client: %v", err)
			}
			for range daily / 4 {
				if _, err := r.Head(t.Context()); err != nil {
					t.Fatalf("own read: %v", err)
				}
			}
			raw, sent := plain(bob, key5, 0)
			if got := p.Send(t.Context(), raw, sent, 0, tx.Sending{}); got[0].Class != tx.Taken {
				t.Errorf("broadcast: %+v", got)
			}
		})
	}
}

// made counts the calls that a node was asked.
func made(node *chaintest.Node) (calls int) {
	for _, n := range node.Calls() {
		calls += n
	}
	return calls
}

// A client's requests at the same time share one reading of the head and one of each nonce; a
// nonce at a block is read once. Another client's requests, and the service's own reads, share
// neither.
func TestClientReadsAreShared(t *testing.T) {
	c, b, _ := mined(t)
	synctest.Test(t, func(t *testing.T) {
		node := c.Node("a")
		p, err := Open(t.Context(), Config{
			Chain: id, Probe: time.Hour, Transport: within{"a": node}, Endpoints: []Endpoint{{Name: "a", URL: "http://a"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		node.Set(chaintest.Faults{Delay: time.Second / 4})
		r := p.Reader()
		s := []chain.Sequence{{Chain: id, Sender: alice, Key: key5}}
		at := func(client string, n int) (calls int) {
			before := made(node)
			done := make(chan error, n)
			for range n {
				go func() {
					on := r.OnBehalf(client)
					head, err := on.Head(t.Context())
					if err == nil && head != b {
						err = fmt.Errorf("the head is %+v", head)
					}
					var nonces []uint64
					if err == nil {
						nonces, err = on.Nonces(t.Context(), head, s)
					}
					if err == nil && nonces[0] != 1 {
						err = fmt.Errorf("the nonce is %d", nonces[0])
					}
					done <- err
				}()
			}
			for range n {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			return made(node) - before
		}
		// The first request reads the head; those that came meanwhile share the next reading.
		if got := at("alice", 20); got > 3 {
			t.Errorf("20 requests at once made %d calls, want at most 3", got)
		}
		if got := at("alice", 1); got != 1 {
			t.Errorf("a later request made %d calls, want 1", got)
		}
		if got := at("bob", 1); got != 2 {
			t.Errorf("another client's request made %d calls, want 2", got)
		}
		next, _ := plain(alice, key5, 1)
		b = mine(t, c, next)
		if nonces, err := r.OnBehalf("alice").Nonces(t.Context(), b, s); err != nil || nonces[0] != 2 {
			t.Errorf("at the next block: %v, %v", nonces, err)
		}
	})
}

// A reader remembers a bounded number of clients, and of nonces for each.
func TestClientReadsAreBounded(t *testing.T) {
	c, b, _ := mined(t)
	r := open(t, nil, serve(t, c.Node("a"))).Reader()
	for n := range clientReadersMax + 10 {
		r.OnBehalf(fmt.Sprint("client", n))
	}
	if len(r.clients) > clientReadersMax {
		t.Errorf("%d clients are remembered", len(r.clients))
	}
	on := r.OnBehalf("alice")
	for n := range clientNoncesMax + 10 {
		on.nonceOf(b.Hash, chain.Sequence{Chain: id, Sender: alice, Key: chain.NonceKey{30: byte(n >> 8), 31: byte(n)}})
	}
	if len(on.nonces) > clientNoncesMax {
		t.Errorf("%d nonces are remembered", len(on.nonces))
	}
	if on.nonceOf(chain.Hash{1}, chain.Sequence{}); len(on.nonces) != 1 {
		t.Errorf("%d nonces of another block are remembered", len(on.nonces)-1)
	}
}

// Answers to a client's reads that are unusable, or differ from those of most nodes, count
// against no endpoint: repeated during a reorg they would take honest nodes out of rotation.
func TestClientReadsJudgeNoEndpoint(t *testing.T) {
	c, b, _ := mined(t)
	var urls []string
	var wrong atomic.Bool
	for _, name := range []string{"a", "b", "c"} {
		g := &gateway{node: c.Node(name)}
		if name == "a" {
			g.misbehave("eth_call", func(w http.ResponseWriter, r *http.Request, body []byte) {
				result := `"0x` + fmt.Sprintf("%064x", 7) + `"`
				if wrong.Load() {
					result = `"nothing"`
				}
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, idOf(body), result) //nolint:errcheck // a test's answer
			})
		}
		urls = append(urls, serve(t, g))
	}
	p := open(t, nil, urls...)
	p.moveTo(p.reader(), p.endpoints[0])
	r := p.Reader()
	for n := range 20 {
		wrong.Store(n%2 == 0)
		s := []chain.Sequence{{Chain: id, Sender: alice, Key: chain.NonceKey{31: byte(n + 1)}}}
		if got, err := r.OnBehalf("mallory").Nonces(t.Context(), b, s); err == nil && got[0] == 7 {
			t.Fatal("a lie is believed")
		}
	}
	for _, s := range p.Status() {
		if s.State != Healthy || s.Failures != 0 || s.Differences != 0 {
			t.Errorf("%s: %s, %g failures", s.Name, s.State, s.Failures)
		}
	}
	if p.reader() != p.endpoints[0] {
		t.Error("the service's own reads have moved")
	}
	// As a control, the service's own read counts.
	_, _ = r.Nonces(t.Context(), b, []chain.Sequence{{Chain: id, Sender: alice, Key: key5}})
	if p.Status()[0].Failures == 0 {
		t.Error("an own read does not count the lie")
	}
}

// Two short outages are not one long outage: between them, own reads found both endpoints healthy.
func TestClientReadsRememberNoEarlierOutage(t *testing.T) {
	raw, hash := plain(alice, key5, 0)
	clock := newTimer()
	c := newCourt(t, 2, func(c *Config) { c.Now = clock.now })
	b := mine(t, c.Chain, raw)
	away := func() {
		c.nodes[1].Set(chaintest.Faults{Down: true})
		c.trip(1)
	}
	sequence := []chain.Sequence{{Chain: id, Sender: alice, Key: key5}}
	nonces := func(client string) error {
		c.read()
		_, err := c.pool.Reader().OnBehalf(client).Nonces(t.Context(), b, sequence)
		return err
	}
	away()
	if err := nonces("alice"); !errors.Is(err, errAlone) {
		t.Errorf("in the first outage: %v", err)
	}
	c.nodes[1].Set(chaintest.Faults{})
	clock.advance(time.Hour)
	c.pool.probe(t.Context(), c.pool.endpoints[1])
	if got, err := c.pool.Reader().Receipts(t.Context(), b, []chain.Hash{hash}); err != nil {
		t.Fatalf("after it: %v, %v", got, err)
	}
	clock.advance(time.Hour)
	away()
	if err := nonces("bob"); !errors.Is(err, errAlone) {
		t.Errorf("in the second outage one endpoint is believed at once: %v", err)
	}
	clock.advance(missedFor)
	if err := nonces("bob"); err != nil {
		t.Errorf("after a while without the other: %v", err)
	}
}

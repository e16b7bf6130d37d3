package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

const id = chain.ID(42431)

var (
	alice = chain.Address{0xa1}
	bob   = chain.Address{0xb0}
	key5  = chain.NonceKey{31: 5}
)

func mustBlock(t *testing.T, text string) chain.Block {
	t.Helper()
	seen, err := parseBlock(reply{result: json.RawMessage(text)}, id)
	if err != nil {
		t.Fatal(err)
	}
	return seen.block
}

// newChain is a chain in memory whose clock does not advance.
func newChain(t *testing.T, rules chaintest.Rules) *chaintest.Chain {
	t.Helper()
	c := chaintest.New(chaintest.Options{
		Chain: id, Decode: chaintest.DecodePlain, Rules: rules,
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
	})
	t.Cleanup(c.Close)
	return c
}

func plain(sender chain.Address, key chain.NonceKey, nonce uint64) (raw []byte, hash chain.Hash) {
	raw = chaintest.EncodePlain(chain.Signed{Chain: id, Type: 0x76, Sender: sender, NonceKey: key, Nonce: nonce, Gas: 50_000})
	return raw, chain.Keccak(raw)
}

func mine(t *testing.T, c *chaintest.Chain, others ...[]byte) chain.Block {
	t.Helper()
	b, err := c.Mine(others...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// timer is a clock that tests advance.
type timer struct {
	mu sync.Mutex
	at time.Time
}

func newTimer() *timer { return &timer{at: time.Unix(1_800_000_000, 0)} }

func (c *timer) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *timer) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// running returns the timer as a clock that also runs by itself, for pauses that end while a call
// waits for them.
func (c *timer) running() func() time.Time {
	began := time.Now()
	return func() time.Time { return c.now().Add(time.Since(began)) }
}

// open opens a pool of these URLs, with a probe interval longer than any test.
func open(t *testing.T, change func(*Config), urls ...string) *Pool {
	t.Helper()
	config := Config{Chain: id, Probe: time.Hour, SendTimeout: 2 * time.Second, CallTimeout: 2 * time.Second}
	for i, url := range urls {
		config.Endpoints = append(config.Endpoints, Endpoint{Name: string(rune('a' + i)), URL: url})
	}
	if change != nil {
		change(&config)
	}
	p, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// gateway is a proxy before a node that may answer in its place.
type gateway struct {
	node http.Handler
	mu   sync.Mutex
	// instead answers requests whose body contains method. It reports whether it answered.
	method  string
	instead func(w http.ResponseWriter, r *http.Request, body []byte)
}

func (g *gateway) misbehave(method string, instead func(w http.ResponseWriter, r *http.Request, body []byte)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.method, g.instead = method, instead
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	g.mu.Lock()
	method, instead, node := g.method, g.instead, g.node
	g.mu.Unlock()
	if instead != nil && strings.Contains(string(body), method) {
		instead(w, r, body)
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	node.ServeHTTP(w, r)
}

// idOf is the id of a single call.
func idOf(body []byte) string {
	var request struct{ ID json.RawMessage }
	if err := json.Unmarshal(body, &request); err != nil {
		panic(err)
	}
	return string(request.ID)
}

// replace answers calls of a method, in batches too, with this result or error ("result":… or
// "error":…). The node answers all other calls.
func (g *gateway) replace(t *testing.T, method, answer string) {
	g.misbehave(`"`+method+`"`, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if body[0] != '[' {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, idOf(body), answer)
			return
		}
		var calls []json.RawMessage
		if err := json.Unmarshal(body, &calls); err != nil {
			t.Error(err)
		}
		for i, call := range calls {
			if strings.Contains(string(call), `"`+method+`"`) {
				calls[i] = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, idOf(call), answer)
				continue
			}
			one := httptest.NewRecorder()
			g.node.ServeHTTP(one, httptest.NewRequestWithContext(r.Context(), http.MethodPost, "/", bytes.NewReader(call)))
			calls[i] = one.Body.Bytes()
		}
		if err := json.NewEncoder(w).Encode(calls); err != nil {
			t.Error(err)
		}
	})
}

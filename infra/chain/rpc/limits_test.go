package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		code int
		text string
		want bool
	}{
		{codeLimitExceeded, "limit exceeded", true},
		{429, "compute units", true},
		{-32000, "Too Many Requests", true},
		{-32016, "you are over rate limit", true},
		{codeInternal, "internal error", false},
		{codeLimitExceeded, "query returned more than 10000 results", false},
		{codeReverted, "rate limit exceeded", false},
		{codeReverted, "execution reverted: rate limit exceeded", false},
		{-32000, "Execution reverted: too many requests", false},
		{-32000, "VM Exception while processing transaction: revert rate limit exceeded", false},
		{codeInternal, "Error: VM Exception while processing transaction: reverted with reason string 'rate limit exceeded'", false},
	} {
		err := fmt.Errorf("chain id: %w", &NodeError{Code: test.code, Message: test.text, Data: json.RawMessage(`"rate limit"`)})
		if limited, pause := limits(err); limited != test.want || pause != 0 {
			t.Errorf("%d %q: %t, %s", test.code, test.text, limited, pause)
		}
	}
	for status, want := range map[int]bool{429: true, 503: false} {
		err := &Unreachable{Status: status, Err: errors.New("rate limit"), retryAfter: time.Second}
		if limited, pause := limits(err); limited != want || pause != time.Second {
			t.Errorf("HTTP %d: %t, %s", status, limited, pause)
		}
	}
}

// rateRefusals are the ways in which nodes refuse calls because of their rate.
var rateRefusals = map[string]func(w http.ResponseWriter, body []byte){
	"429":      func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusTooManyRequests) },
	"-32005":   says(`"error":{"code":-32005,"message":"limit exceeded"}`),
	"code 429": says(`"error":{"code":429,"message":"slow down"}`),
	"a text":   says(`"error":{"code":-32000,"message":"rate limit exceeded"}`),
}

// refuse makes a node answer calls of a method so; all calls if it is empty.
func (g *gateway) refuse(method string, answer func(w http.ResponseWriter, body []byte)) {
	g.misbehave(method, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		if body[0] == '[' { // a batch is refused as a whole
			body = []byte(`{"id":null}`)
		}
		answer(w, body)
	})
}

// A node's refusal of a client's call because of the rate, however the node says so, teaches the rate
// of this client's calls of the kind, and nothing else.
func TestRefusalsInsideAnswersTeachTheirClient(t *testing.T) {
	uses := map[string]purpose{"first attempt": broadcast, "repeat": repeat, "estimate": trying, "passed on": onBehalf}
	for kind, use := range uses {
		for name, refusal := range rateRefusals {
			t.Run(kind+", "+name, func(t *testing.T) {
				g, clock := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}, newTimer()
				p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
				g.refuse(methodsOf[kind], refusal)
				callsFor(t, p, "mallory")[kind]()
				m := p.endpoints[0].meter
				learned := func(client string, use purpose) float64 {
					m.mu.Lock()
					defer m.mu.Unlock()
					if c := m.pauses.clients[pausedClient{client, use}]; c != nil {
						return c.learned
					}
					return 0
				}
				if learned("mallory", use) == 0 {
					t.Error("no rate is learned")
				}
				for other := range purposes {
					if other != use && learned("mallory", other) != 0 || learned("bob", other) != 0 {
						t.Errorf("a rate of others is learned: purpose %d", other)
					}
				}
				if got := p.Status()[0]; got.State != Healthy || got.Failures != 0 || got.Budget.Pause != 0 || got.Budget.Rate != 0 {
					t.Errorf("status %+v", got)
				}
			})
		}
	}
}

// A contract's reason for a revert is no answer about the rate: it is passed on, and the next call is
// made at once. Estimates say that the call reverts. A read of the service itself pauses nothing.
func TestRevertsLimitNothing(t *testing.T) {
	for _, revert := range []string{
		`"error":{"code":3,"message":"execution reverted: rate limit exceeded","data":"0x08c379a0"}`,
		`"error":{"code":-32000,"message":"execution reverted: Too Many Requests"}`,
		`"error":{"code":-32603,"message":"VM Exception while processing transaction: reverted with reason string 'rate limit exceeded'"}`,
	} {
		c, asked := newChain(t, chaintest.Rules{}), atomic.Int64{}
		var urls []string
		for _, name := range []string{"a", "b"} {
			g := &gateway{node: c.Node(name)}
			for _, method := range []string{"eth_call", "eth_estimateGas"} {
				inner := &gateway{node: g.node}
				inner.misbehave(method, func(w http.ResponseWriter, _ *http.Request, body []byte) {
					asked.Add(1)
					says(revert)(w, body)
				})
				g.node = inner
			}
			urls = append(urls, serve(t, g))
		}
		clock := newTimer()
		p := open(t, func(c *Config) { c.Now = clock.now }, urls...)
		before := sharedOf(p)
		for range 5 {
			var node *NodeError
			_, err := p.Ask(t.Context(), "mallory", "eth_call", json.RawMessage(`[{},"latest"]`), 1<<10, nil)
			if !errors.As(err, &node) {
				t.Fatalf("%s: passed on as %v", revert, err)
			}
		}
		if internal := strings.Contains(revert, "-32603"); !internal && asked.Load() != 5 {
			t.Errorf("%s: nodes are asked %d times for five calls", revert, asked.Load())
		}
		to := chain.Address{1}
		_, err := p.Reader().EstimateGas(t.Context(), "mallory", alice, chain.Unsigned{Chain: id, Calls: []chain.Call{{To: &to}}})
		if reverted := (*chain.Reverted)(nil); strings.Contains(revert, "execution reverted") && !errors.As(err, &reverted) {
			t.Errorf("%s: the estimate says %v", revert, err)
		}
		for _, e := range p.endpoints {
			e.meter.mu.Lock()
			for of, c := range e.meter.pauses.clients {
				if c.learned != 0 || !c.until.IsZero() {
					t.Errorf("%s: calls of %+v are limited", revert, of)
				}
			}
			e.meter.mu.Unlock()
		}
		for i, after := range sharedOf(p) {
			if after != before[i] {
				t.Errorf("%s: endpoint %d: %+v, before %+v", revert, i, after, before[i])
			}
		}
		if _, err := p.askFor(t.Context(), p.endpoints[0], read, time.Second, 1<<10, balanceCall(&to, alice)); err != nil {
			t.Fatal(err)
		}
		if got := p.Status()[0].Budget; got.Pause != 0 || got.Rate != 0 {
			t.Errorf("%s: after a read %+v", revert, got)
		}
	}
}

// A node may refuse some calls of a batch alone. The answered ones count for the rate that it allows.
func TestRefusalsInABatchTeachTheRate(t *testing.T) {
	g, clock := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}, newTimer()
	p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
	g.replace(t, "eth_gasPrice", `"error":{"code":-32005,"message":"limit exceeded"}`)
	calls := []call{{"eth_gasPrice", nil}}
	for range 40 {
		calls = append(calls, call{"eth_blockNumber", nil})
	}
	ctx := ofClient(t.Context(), "mallory")
	for _, use := range []purpose{repeat, read} {
		clock.advance(10 * learnedRecent)
		if _, err := p.askFor(ctx, p.endpoints[0], use, time.Second, maxSmallReply, calls...); err != nil {
			t.Fatal(err)
		}
	}
	m := p.endpoints[0].meter
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := m.pace.learned; got < 0.65*40 || got > 0.75*40 {
		t.Errorf("the rate of all calls is %g", got)
	}
	if c := m.pauses.clients[pausedClient{"mallory", repeat}]; c == nil || c.learned != learnedCut*40 {
		t.Errorf("the rate of the client's calls is %+v", c)
	}
}

// An endpoint that refuses to show its identity because of the rate, at the start or when it must show
// it again, is not blamed and not believed. It is asked again after a pause that grows.
func TestIdentityIsAskedForAgainAfterAPause(t *testing.T) {
	for name, refusal := range rateRefusals {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, known %t", name, known), func(t *testing.T) {
				g, clock := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}, newTimer()
				asked := 0
				refused := func() {
					g.misbehave("eth_chainId", func(w http.ResponseWriter, _ *http.Request, body []byte) {
						asked++
						if body[0] == '[' {
							body = []byte(`{"id":null}`)
						}
						refusal(w, body)
					})
				}
				if !known {
					refused()
				}
				p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
				e := p.endpoints[0]
				if known {
					refused()
					e.doubt()
					clock.advance(recheckAfter)
					_ = p.verify(t.Context(), e)
				}
				for _, pause := range []time.Duration{pauseMin, 2 * pauseMin, 4 * pauseMin} {
					before := asked
					for range 5 {
						if err := p.verify(t.Context(), e); err == nil {
							t.Fatal("it is believed")
						}
					}
					raw, hash := plain(alice, key5, 0)
					if got := p.Send(t.Context(), raw, hash, 0, tx.Sending{})[0]; got.Class != tx.Retry {
						t.Errorf("a broadcast: %+v", got)
					}
					if asked != before {
						t.Errorf("it is asked %d times in a pause", asked-before)
					}
					clock.advance(pause)
					if _ = p.verify(t.Context(), e); asked != before+1 {
						t.Errorf("after %s it is asked %d times", pause, asked-before)
					}
				}
				if got := p.Status()[0]; got.Failures != 0 || got.Trips != 0 {
					t.Errorf("it is blamed: %+v", got)
				}
				g.misbehave("", nil)
				clock.advance(pauseUnsaid)
				if err := p.verify(t.Context(), e); err != nil || p.state(e) != Healthy {
					t.Errorf("it is %s: %v", p.state(e), err)
				}
			})
		}
	}
}

// A node that refuses most reads of the service itself, and does not say for how long, is not asked
// for a while. That does not count against it while clients use it.
func TestNodeThatRefusesReadsRests(t *testing.T) {
	for name, refusal := range rateRefusals {
		g, clock := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}, newTimer()
		p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
		if !callsFor(t, p, "mallory")["first attempt"]() {
			t.Fatal("not served")
		}
		clock.advance(lowQuiet)
		g.refuse("", refusal)
		for range 3 {
			if got := p.state(p.endpoints[0]); got != Healthy {
				t.Errorf("%s: %s too early", name, got)
			}
			clock.advance(learnedRecent)
			if _, _, err := p.Reader().block(t.Context(), p.endpoints[0], "latest"); err == nil {
				t.Fatal("the read is not refused")
			}
		}
		if got := p.Status()[0]; got.State != Limited || got.Failures != 0 || got.Budget.Pause != pauseMin {
			t.Errorf("%s: %+v", name, got)
		}
		g.misbehave("", nil)
		clock.advance(pauseMin)
		if _, _, err := p.Reader().block(t.Context(), p.endpoints[0], "latest"); err != nil || p.state(p.endpoints[0]) != Healthy {
			t.Errorf("%s: after the pause: %v", name, err)
		}
	}
}

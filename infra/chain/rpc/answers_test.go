package rpc

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// callsFor are calls of each kind for one client. Each reports whether a node served it.
func callsFor(t *testing.T, p *Pool, client string) map[string]func() bool {
	raw, hash := plain(alice, key5, 0)
	served := func(answers []tx.Answer) bool {
		return slices.ContainsFunc(answers, func(a tx.Answer) bool { return a.Class == tx.Taken || a.Class == tx.Known })
	}
	to := chain.Address{1}
	return map[string]func() bool{
		"first attempt": func() bool { return served(p.Send(t.Context(), raw, hash, 0, tx.Sending{Client: client})) },
		"repeat": func() bool {
			return served(p.SendAll(t.Context(), raw, hash, 1, tx.Sending{Client: client, Repeat: true}))
		},
		"estimate": func() bool {
			_, err := p.Reader().EstimateGas(t.Context(), client, alice, chain.Unsigned{Chain: id, Calls: []chain.Call{{To: &to}}})
			return err == nil
		},
		"passed on": func() bool {
			_, err := p.Ask(t.Context(), client, "eth_getBalance", json.RawMessage(`["0x0000000000000000000000000000000000000001","latest"]`), 1<<10, nil)
			return err == nil
		},
	}
}

// methodsOf are the methods of callsFor that nodes refuse here.
var methodsOf = map[string]string{
	"first attempt": send, "repeat": send, "estimate": "eth_estimateGas", "passed on": "eth_getBalance",
}

// shared is what all calls to an endpoint share.
type shared struct {
	pace   pace
	all    time.Time
	own    time.Duration
	state  State
	reader *endpoint
	health health
}

func sharedOf(p *Pool) (all []shared) {
	for _, e := range p.endpoints {
		e.meter.mu.Lock()
		s := shared{pace: pace{learned: e.meter.pace.learned}, all: e.meter.pauses.all, own: e.meter.pauses.own}
		e.meter.mu.Unlock()
		s.state, s.reader = p.state(e), p.reader()
		e.mu.Lock()
		s.health = e.health
		e.mu.Unlock()
		s.health.head, s.health.headAt, s.health.lag, s.health.lead = 0, time.Time{}, 0, 0
		all = append(all, s)
	}
	return all
}

// refusals are the answers by which nodes refuse a call because of its content, its sender or its
// method.
func says(text string) func(http.ResponseWriter, []byte) {
	return func(w http.ResponseWriter, body []byte) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, idOf(body), text) //nolint:errcheck // a test's answer
	}
}

var refusals = map[string]func(w http.ResponseWriter, body []byte){
	"429": func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusTooManyRequests) },
	"429 and a pause": func(w http.ResponseWriter, _ []byte) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	},
	"503 and a pause": func(w http.ResponseWriter, _ []byte) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
	},
	"413":            func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusRequestEntityTooLarge) },
	"500":            func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusInternalServerError) },
	"no JSON":        func(w http.ResponseWriter, _ []byte) { _, _ = w.Write([]byte("<html>")) },
	"internal error": says(`"error":{"code":-32603,"message":"internal error"}`),
	"limit exceeded": says(`"error":{"code":-32005,"message":"limit exceeded"}`),
	"code 429":       says(`"error":{"code":429,"message":"slow down"}`),
	"rate limit":     says(`"error":{"code":-32000,"message":"rate limit exceeded"}`),
	"another hash":   says(`"result":"0x` + strings.Repeat("ab", 32) + `"`),
	"cut":            func(http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) },
}

// Nodes refuse calls because of their content, their sender or their method. Their answers change
// neither the nodes' health nor the pauses and rates of other clients' calls and of our own: these go
// on as before.
func TestAnswersToClientsChangeNothingShared(t *testing.T) {
	for kind, method := range methodsOf {
		for name, refuse := range refusals {
			t.Run(kind+", "+name, func(t *testing.T) {
				c, clock := newChain(t, chaintest.Rules{}), newTimer()
				var urls []string
				var gateways []*gateway
				for _, name := range []string{"a", "b"} {
					g := &gateway{node: c.Node(name)}
					gateways, urls = append(gateways, g), append(urls, serve(t, g))
				}
				p := open(t, func(c *Config) { c.Now = clock.now }, urls...)
				p.moveTo(p.reader(), p.endpoints[0])
				before := sharedOf(p)
				for _, g := range gateways {
					g.misbehave(method, func(w http.ResponseWriter, _ *http.Request, body []byte) { refuse(w, body) })
				}
				for range 20 {
					if callsFor(t, p, "mallory")[kind]() && name != "another hash" {
						t.Fatal("no node refuses the call")
					}
					clock.advance(time.Second)
				}
				for _, g := range gateways {
					g.misbehave("", nil)
				}
				for i, after := range sharedOf(p) {
					if after != before[i] {
						t.Errorf("endpoint %d: %+v, before %+v", i, after, before[i])
					}
				}
				if _, err := p.Reader().Head(t.Context()); err != nil {
					t.Errorf("own read: %v", err)
				}
				for other, call := range callsFor(t, p, "bob") {
					if !call() {
						t.Errorf("another client's %s is not served", other)
					}
				}
			})
		}
	}
}

// Broadcasts that are lost, without any answer, count for an endpoint's health if two clients lose
// them, one for each client's.
func TestLostBroadcastsOfTwoClientsCount(t *testing.T) {
	g, clock := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}, newTimer()
	p := open(t, func(c *Config) { c.Now = clock.now }, serve(t, g))
	g.misbehave(send, func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) })
	lose := func(client string) {
		if callsFor(t, p, client)["first attempt"]() {
			t.Fatal("the broadcast was not lost")
		}
	}
	for range 10 {
		lose("mallory")
	}
	if got := p.Status()[0]; got.State != Healthy || got.Failures != 0 {
		t.Errorf("after one client's: %s, %g", got.State, got.Failures)
	}
	lose("bob")
	once := p.Status()[0].Failures
	for range 10 {
		lose("mallory")
	}
	if got := p.Status()[0].Failures; once != failureWeight || got != once {
		t.Errorf("one of another client counts for %g, with more of the first for %g", once, got)
	}
	clock.advance(lostTogether + time.Second)
	if lose("bob"); p.Status()[0].Failures > once {
		t.Error("what was lost long before counts")
	}
	for range 2 {
		lose("mallory")
		lose("bob")
		lose("mallory")
	}
	if got := p.Status()[0]; got.State != Tripped {
		t.Errorf("after three of each: %s, %g", got.State, got.Failures)
	}
}

// A refusal for the rate teaches the rate of the client's calls of the purpose: they are made at seven
// tenths of the rate at which they were answered, and calls of its choice at half of that.
func TestClientsRatesAreLearned(t *testing.T) {
	for use, want := range map[purpose]float64{broadcast: 28, repeat: 28, trying: 14, onBehalf: 14} {
		t.Run(fmt.Sprint(use), func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			m := newMeter("a", Budget{}, now)
			for range 40 {
				m.answered(now, of(use, "mallory"))
			}
			m.refused(now, of(use, "mallory"), true, 0)
			now = now.Add(max(0, m.pauses.left(now, of(use, "mallory"))))
			made := 0.0
			for {
				wait, _, _, err := m.slot(now, of(use, "mallory"), time.Second)
				if err != nil || wait >= time.Second {
					break
				}
				made++
			}
			if made < want-1 || made > want+want*learnedBurst {
				t.Errorf("%g calls in a second, want %g", made, want)
			}
			if wait, _, _, err := m.slot(now, of(use, "bob"), 0); err != nil || wait > 0 {
				t.Errorf("another client's wait for %s, %v", wait, err)
			}
			for other := range purposes {
				if wait, _, _, err := m.slot(now, of(other, "mallory"), 0); other != use && (err != nil || wait > 0) {
					t.Errorf("calls of purpose %d wait for %s, %v", other, wait, err)
				}
			}
		})
	}
}

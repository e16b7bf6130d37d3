package rpc

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
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
}

func sharedOf(p *Pool) (all []shared) {
	for _, e := range p.endpoints {
		e.meter.mu.Lock()
		s := shared{pace: pace{learned: e.meter.pace.learned}, all: e.meter.pauses.all, own: e.meter.pauses.own}
		e.meter.mu.Unlock()
		s.state, s.reader = p.state(e), p.reader()
		all = append(all, s)
	}
	return all
}

// refusals are the answers by which nodes refuse a call because of its content, its sender or its
// method.
var refusals = map[string]func(w http.ResponseWriter, body []byte){
	"429": func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusTooManyRequests) },
	"429 and a pause": func(w http.ResponseWriter, _ []byte) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	},
}

// A node limits the calls of one sender, or of one method. Its answers change the pauses and rates of
// the client alone whose calls these are: all other calls go on as before.
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
					if callsFor(t, p, "mallory")[kind]() {
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

package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// hangsBut makes an endpoint hang on all but each nth request, and counts the requests.
func hangsBut(g *gateway, n int64) *atomic.Int64 {
	asked := new(atomic.Int64)
	g.misbehave("", func(w http.ResponseWriter, r *http.Request, body []byte) {
		if asked.Add(1)%n == 0 {
			r.Body = io.NopCloser(bytes.NewReader(body))
			g.node.ServeHTTP(w, r)
			return
		}
		<-r.Context().Done()
	})
	return asked
}

// trip takes an endpoint out of rotation.
func (c court) trip(i int) {
	for range 3 {
		c.pool.blame(c.pool.endpoints[i], errors.New("it hangs"))
	}
}

// The only other endpoint answers every third request, so it is out of rotation. One hearing
// still gets its vote, together with its identity.
func TestWitnessThatStumbles(t *testing.T) {
	clock := newTimer()
	c := newCourt(t, 2, func(c *Config) { c.Now = clock.now })
	raw, hash := plain(alice, key5, 0)
	b := mine(t, c.Chain, raw)
	asked := hangsBut(c.liar, 3)
	c.pool.moveTo(c.pool.reader(), c.pool.endpoints[1])
	clock.advance(recheckAfter)
	c.trip(0)
	if got, err := c.pool.Reader().SureReceipts(t.Context(), b, []chain.Hash{hash}); err != nil || got[hash].Status != 1 {
		t.Fatalf("%+v, %v after %d requests", got, err, asked.Load())
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
	if _, open := c.pool.sure.find(b, []chain.Hash{hash}); len(open) > 0 {
		t.Error("it is still the word of one")
	}
}

// A witness that is asked often has one vote: two others must agree, and only one can be
// reached.
func TestWitnessAskedOftenIsOne(t *testing.T) {
	c := newCourt(t, 3, func(c *Config) { c.Agree = 3 })
	raw, hash := plain(alice, key5, 0)
	b := mine(t, c.Chain, raw)
	c.nodes[1].Set(chaintest.Faults{Down: true})
	c.trip(1)
	c.trip(2)
	if got, err := c.pool.Reader().Receipts(t.Context(), b, []chain.Hash{hash}); !errors.Is(err, errAlone) {
		t.Errorf("believed %+v, %v", got, err)
	}
}

// An endpoint that is out of rotation for lying, or serves another chain, has no vote.
func TestWitnessesThatAreNotAsked(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, c court){
		"distrusted": func(_ *testing.T, c court) {
			for range liesMax {
				c.pool.blame(c.pool.endpoints[1], contradiction("a lie"))
			}
		},
		"of another chain": func(t *testing.T, c court) {
			c.nodes[1].Set(chaintest.Faults{ChainID: 7})
			c.pool.reidentify(t.Context(), c.pool.endpoints[1])
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t, 2, nil)
			raw, hash := plain(alice, key5, 0)
			b := mine(t, c.Chain, raw)
			change(t, c)
			before := c.nodes[1].Calls()["eth_getTransactionReceipt"]
			if _, err := c.pool.Reader().Receipts(t.Context(), b, []chain.Hash{hash}); err != nil {
				t.Error(err)
			}
			if c.nodes[1].Calls()["eth_getTransactionReceipt"] != before {
				t.Error("it was asked")
			}
		})
	}
}

// A node is replaced by a node of another chain while it is out of rotation. The answer that
// would have confirmed a receipt shows the other chain, and does not count.
func TestStumblingWitnessOfAnotherChain(t *testing.T) {
	clock := newTimer()
	c := newCourt(t, 2, func(c *Config) { c.Now = clock.now })
	raw, hash := plain(alice, key5, 0)
	b := mine(t, c.Chain, raw)
	c.nodes[1].Set(chaintest.Faults{ChainID: 7})
	clock.advance(recheckAfter)
	c.trip(1)
	if got, err := c.pool.Reader().Receipts(t.Context(), b, []chain.Hash{hash}); !errors.Is(err, errAlone) {
		t.Errorf("believed %+v, %v", got, err)
	}
	if got := c.pool.Status()[1]; got.State != Foreign {
		t.Errorf("it is %+v", got)
	}
}

// within is HTTP without a network, for simulations under a test's clock.
type within map[string]http.Handler

func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	answered := make(chan *http.Response, 1)
	go func() {
		recorder := httptest.NewRecorder()
		w[r.URL.Host].ServeHTTP(recorder, r)
		answered <- recorder.Result()
	}()
	select {
	case response := <-answered:
		return response, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// The only other endpoint answers later than the hearing waits. Its vote counts when the same
// claim is made again.
func TestWitnessThatIsAlwaysLate(t *testing.T) {
	c := newChain(t, chaintest.Rules{})
	raw, hash := plain(alice, key5, 0)
	other, otherHash := plain(bob, key5, 0)
	b := mine(t, c, raw, other)
	synctest.Test(t, func(t *testing.T) {
		slow := c.Node("slow")
		p, err := Open(t.Context(), Config{
			Chain: id, Probe: time.Hour, Transport: within{"quick": c.Node("quick"), "slow": slow},
			Endpoints: []Endpoint{{Name: "quick", URL: "http://quick"}, {Name: "slow", URL: "http://slow"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		slow.Set(chaintest.Faults{Delay: 2 * agreeWithin})
		began := time.Now()
		for {
			_, err := p.Reader().SureReceipts(t.Context(), b, []chain.Hash{hash, otherHash})
			if err == nil {
				break
			}
			if time.Since(began) > 4*agreeWithin {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
		}
		if _, open := p.sure.find(b, []chain.Hash{hash, otherHash}); len(open) > 0 {
			t.Error("it is still the word of one")
		}
		if got := p.Status()[1]; got.State != Healthy {
			t.Errorf("the slow one is %+v", got)
		}
	})
}

// A confirmation expires, because its endpoint may have left the branch. The number of
// remembered confirmations is bounded.
func TestWordsAreForgotten(t *testing.T) {
	var w words
	clock, e := newTimer(), &endpoint{}
	w.add(borne{"", e}, clock.now())
	w.add(borne{"a block", e}, clock.now())
	if w.take(borne{"a block", &endpoint{index: 1}}, clock.now()) || w.take(borne{"", e}, clock.now()) || !w.take(borne{"a block", e}, clock.now()) {
		t.Errorf("known: %v", w.at)
	}
	if w.take(borne{"a block", e}, clock.now()) {
		t.Error("it is good for more than once")
	}
	w.add(borne{"a block", e}, clock.now())
	clock.advance(borneFor)
	if w.take(borne{"a block", e}, clock.now()) {
		t.Error("it is known still")
	}
	for i := range borneMax + 1 {
		w.add(borne{fmt.Sprint(i), e}, clock.now())
	}
	if len(w.at) != borneMax || len(w.order) != borneMax || w.take(borne{"0", e}, clock.now()) {
		t.Errorf("%d words, %d in order", len(w.at), len(w.order))
	}
}

package rpc

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// hangsBut has an endpoint hang on every request but each nth, and counts them.
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

// The only other endpoint answers every third request, so it is out of rotation: its word
// is had all the same, in one hearing, and it says with it who it is.
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

// However often a witness is asked, it is one: two others have to agree, and only one of
// them can be reached.
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

// One that is out of rotation for lying, or serves another chain, is no witness.
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

// A node is replaced by one of another chain while it stumbles: it says so in the answer
// that would have borne a receipt out, and is not believed.
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

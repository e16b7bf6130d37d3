package rpc

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// A block counts when other endpoints have it too, whichever endpoint reads use.
func TestShown(t *testing.T) {
	for n := 1; n <= 4; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, n, nil)
			b := mine(t, c.Chain)
			r := c.pool.Reader()
			if err := r.Shown(t.Context(), b); err != nil {
				t.Errorf("the head: %v", err)
			}
			if n == 1 {
				return // a single endpoint is believed
			}
			for what, forged := range map[string]chain.Block{
				"another time": {Number: b.Number, Hash: b.Hash, Parent: b.Parent, Time: b.Time + 1000},
				"another hash": {Number: b.Number, Hash: chain.Hash{0xee}, Parent: b.Parent, Time: b.Time},
				"none there":   {Number: b.Number + 1, Hash: chain.Hash{0xef}, Parent: b.Hash, Time: b.Time + 1},
			} {
				c.read()
				c.liar.replace(t, "eth_getBlockByNumber", `"result":`+blockText(forged))
				for range 2 { // the second time from the other
					if err := r.Shown(t.Context(), forged); err == nil {
						t.Errorf("%s is believed", what)
					}
				}
				if c.pool.reader() == c.pool.endpoints[0] {
					t.Errorf("%s: the liar is read from still", what)
				}
			}
			if err := r.Shown(t.Context(), b); err != nil && n > 2 {
				t.Errorf("the truth, then: %v", err)
			}
		})
	}
}

// An endpoint that lags is waited for until it has reached the block.
func TestShownByALaggard(t *testing.T) {
	c := newCourt(t, 2, nil)
	old := mine(t, c.Chain)
	b := mine(t, c.Chain)
	c.nodes[1].Set(chaintest.Faults{Lag: 1})
	r := c.pool.Reader()
	if err := r.Shown(t.Context(), b); !errors.Is(err, errAlone) {
		t.Errorf("the other lags: %v", err)
	}
	if got, err := r.Head(t.Context()); err != nil || got != old {
		t.Errorf("head %+v, %v", got, err)
	}
	if err := r.Shown(t.Context(), old); err != nil {
		t.Errorf("what both have: %v", err)
	}
}

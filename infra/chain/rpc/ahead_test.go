package rpc

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// One of two nodes claims to be far ahead, so that the other seems to lag, and has no block
// below its head. The pool detects this and reads from the other.
func TestAheadOfTheOnlyOther(t *testing.T) {
	for _, ahead := range []uint64{15, 1000, 1 << 40} {
		clock := newTimer()
		c := newCourt(t, 2, func(c *Config) { c.Now = clock.now })
		for range 4 {
			mine(t, c.Chain)
		}
		c.nodes[0].Set(chaintest.Faults{Ahead: ahead})
		r := c.pool.Reader()
		follow := func() error {
			head, err := r.Newest(t.Context())
			if err == nil {
				_, _, err = r.BlockByHash(t.Context(), head.Parent)
			}
			return err
		}
		steps := 0
		for ; steps < 50 && c.pool.Status()[0].State != Distrusted; steps++ {
			_ = follow() // it is one or the other
		}
		t.Logf("%d ahead: found out in %d steps", ahead, steps)
		for range 3 {
			if err := follow(); err != nil {
				t.Errorf("%d ahead: %v", ahead, err)
			}
		}
		if got := c.pool.Status(); got[0].State != Distrusted || got[1].State != Healthy || !got[1].Reading {
			t.Errorf("%d ahead: %+v", ahead, got)
		}
	}
}

package guard_test

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// gated counts reads of streams, and blocks them until the gate is open.
type gated struct {
	port.Store
	reads *atomic.Int64
	gate  chan struct{}
}

func (g gated) ReadStream(ctx context.Context, s eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	g.reads.Add(1)
	<-g.gate
	return g.Store.ReadStream(ctx, s, after)
}

// Many lanes of a signer ask concurrently for their room. One read of the signer that began
// after they asked serves all of them, and includes all earlier events.
func TestLanesShareReads(t *testing.T) {
	w := newWorld(t)
	w.register(w.replica(), alice)
	synctest.Test(t, func(t *testing.T) {
		reads, gate := &atomic.Int64{}, make(chan struct{})
		g := w.replica(func(c *guard.Config) { c.Signers.Store = gated{c.Signers.Store, reads, gate} })
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, err := g.Room(t.Context(), laneOf(alice), signer.Load{Capacity: 10}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // one reads, 99 wait for it
		close(gate)
		all.Wait()
		if n := reads.Load(); n > 4 {
			t.Errorf("%d reads for 100 lanes", n)
		}
	})
	w.judge()
}

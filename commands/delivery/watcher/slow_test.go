package watcher

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// slowNode is a node whose answers take a time.
type slowNode struct {
	Lookup
	takes *time.Duration
}

func (n slowNode) SureNonces(context.Context, chain.Block, []chain.Sequence) ([]uint64, error) {
	time.Sleep(*n.takes)
	return nil, errTrouble
}

// A step waits a quarter of a second at most for settlers, and not for a client whose last settler
// took longer.
func TestStepsDoNotWaitForSlowSettlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes time.Duration
		r := (&Watcher{Now: time.Now, Log: slog.New(slog.DiscardHandler)}).start(nil)
		r.For = func(string) Lookup { return slowNode{takes: &takes} }
		for _, step := range []struct{ takes, want time.Duration }{
			{10 * time.Millisecond, 10 * time.Millisecond}, {time.Second, settleWait}, {time.Second, 0},
			{10 * time.Millisecond, 0}, {10 * time.Millisecond, 10 * time.Millisecond},
		} {
			takes = step.takes
			began := time.Now()
			left := r.settleAll(t.Context(), expiry, chain.Block{}, []absence{{row: tx.Work{Client: "mallory"}, mayBeFree: true}})
			if took := time.Since(began); took != step.want || len(left) != 1 {
				t.Errorf("a step waits %s, want %s, for a settler that takes %s; %d rows are left", took, step.want, step.takes, len(left))
			}
			r.settlers.running.Wait()
		}
	})
}

package guard_test

import (
	"context"
	"iter"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// rows keeps one snapshot per stream.
type rows struct {
	all map[eventlog.Stream]eventlog.Snapshot
}

func (r rows) Snapshot(_ context.Context, stream eventlog.Stream) (eventlog.Snapshot, bool, error) {
	s, ok := r.all[stream]
	return s, ok, nil
}

func (r rows) KeepSnapshot(_ context.Context, s eventlog.Snapshot) error {
	r.all[s.Stream] = s
	return nil
}

// reads counts the events that are read of streams.
type reads struct {
	port.Store
	n *int
}

func (r reads) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for e, err := range r.Store.ReadStream(ctx, stream, after) {
			*r.n++
			if !yield(e, err) {
				return
			}
		}
	}
}

// After a restart a budget is read from its last snapshot, even if the earlier process has
// never read it as a whole.
func TestSnapshots(t *testing.T) {
	w := newWorld(t)
	kept, n := rows{map[eventlog.Stream]eventlog.Snapshot{}}, 0
	snapshots := func(c *guard.Config) {
		c.Budgets.Store = reads{c.Budgets.Store, &n}
		c.Budgets.Snapshots = &handler.Snapshots[budget.State]{
			Rows: kept, Every: 10, Schema: budget.SnapshotSchema, Encode: budget.State.Snapshot, Decode: budget.Restore,
			Failed: func(stream eventlog.Stream, err error) { t.Error(stream, err) },
		}
	}
	g := w.replica(snapshots)
	w.register(g, alice)
	w.limit(g, budget.Account{Kind: budget.OnChain}, 1000)
	for i := range 100 {
		must(t, w.allow(g, alice, 1, request(i), 1))
	}
	if n > 50 {
		t.Errorf("%d events are read by who appended them", n)
	}
	n = 0
	s, err := w.replica(snapshots).Budget(t.Context(), here)
	must(t, err)
	if used := s.Used(budget.DayOf(w.now()), budget.Account{Kind: budget.OnChain}).Fee; used != chain.NewAmount(100) {
		t.Errorf("%s is used", used)
	}
	if n > 30 {
		t.Errorf("%d of 101 events are read", n)
	}
}

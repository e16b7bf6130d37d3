package app

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// A call for the next free nonce gives its place back between two queries: other clients' calls
// need not wait until the due queue has caught up with the log.
func TestNextFreeHoldsNoPlace(t *testing.T) {
	db, err := embedded.Open(t.TempDir(), embedded.Options{AllowDataLoss: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	appended, err := db.Log().Append(t.Context(), "tx-0x1-0x2", 0, eventlog.Event{ID: eventlog.ID{1}, Name: "tx.accepted.v1", Data: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	a := &App{Store: db.Log()}
	a.Ports.Storage.Checkpoints = db.Work()
	a.Ports.Storage.NextFree = db.Work().NextFree

	var held, most, taken atomic.Int64
	polled := make(chan struct{})
	place := func(context.Context) (func(), error) {
		most.Store(max(most.Load(), held.Add(1))) // one call takes its places one after the other
		if taken.Add(1) == 4 {
			close(polled)
		}
		return func() { held.Add(-1) }, nil
	}
	next := make(chan uint64, 1)
	go func() {
		n, err := a.nextFree(t.Context(), chain.Sequence{Chain: 1, Sender: chain.Address{2}}, 7, nil, place)
		if err != nil {
			t.Error(err)
		}
		next <- n
	}()
	<-polled // the queue is behind the log
	if err := db.Work().MoveCheckpoint(t.Context(), scheduler.Reader, 0, appended.Position); err != nil {
		t.Fatal(err)
	}
	if n := <-next; n != 7 {
		t.Errorf("the next nonce is %d", n)
	}
	if most.Load() != 1 || held.Load() != 0 {
		t.Errorf("%d places were held at once, %d at the end", most.Load(), held.Load())
	}
}

package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// While another process feeds the queue, Abroad wakes lanes for requested intents as a
// feeder would. While this process feeds, its own feeder wakes them.
func TestAbroad(t *testing.T) {
	f := newFeeding(t)
	var feeds atomic.Bool
	fed := make(chan []intent.Waiting, 10)
	a := Abroad{Store: f.log, Codec: intent.Codec(), Feeds: feeds.Load, Fed: func(fresh []intent.Waiting, more bool) {
		if more {
			t.Error("it says that there is more")
		}
		fed <- fresh
	}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()

	var told []intent.Waiting
	for n := 0; len(told) == 0; n++ { // it may not have begun yet
		r := fedRequest(n)
		f.command(r.ID(), intent.Create{Request: r, At: time.Unix(1000, 0)})
		select {
		case told = <-fed:
		case <-time.After(time.Millisecond):
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	for batch, err := range f.log.ReadAll(t.Context(), told[0].Position-1, eventlog.Filter{}, len(told)) {
		must(t, err)
		var want []intent.Waiting
		for i, r := range batch.Events {
			id, err := intent.ParseStream(r.Stream)
			must(t, err)
			want = append(want, f.state(id).Requested.Request.Waiting(told[i].Position))
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(told, a.fresh(batch.Events)); diff != "" {
			t.Error(diff)
		}
		feeds.Store(true)
		if fresh := a.fresh(batch.Events); fresh != nil {
			t.Errorf("it tells of %d that are fed here", len(fresh))
		}
		break
	}
}

package worker

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Abroad wakes the lanes of this process while another process feeds the queue. The feeder
// wakes only the lanes of its own process; without Abroad the lanes here would find new
// intents at their next poll.
type Abroad struct {
	Store port.Store
	Codec eventlog.Codec[intent.Event]
	// Feeds reports whether this process feeds the queue itself.
	Feeds func() bool
	// Fed is called as [Feeder].Fed is.
	Fed func(fresh []intent.Waiting, more bool)
}

// fedAfter is the time after which a requested intent is usually in the queue. Later ones
// are found by the poll.
const fedAfter = 30 * time.Millisecond

// Run runs until ctx ends or the store fails; after a failure it may be run again.
func (a Abroad) Run(ctx context.Context) error {
	head, err := a.Store.Head(ctx)
	if err != nil {
		return err
	}
	asked := eventlog.Filter{Names: []string{"intent.requested."}}
	for batch, err := range a.Store.Subscribe(ctx, head, asked, newsMax) {
		if err != nil {
			return err
		}
		fresh := a.fresh(batch.Events)
		if len(fresh) == 0 {
			continue
		}
		if err := pause.For(ctx, fedAfter); err != nil {
			return err
		}
		a.Fed(fresh, false)
	}
	return ctx.Err()
}

// fresh returns the requested intents, or none if this process feeds: then the feeder
// reports them. It skips unreadable events; the feeder stops at those.
func (a Abroad) fresh(events []eventlog.Recorded) (fresh []intent.Waiting) {
	if a.Feeds() {
		return nil
	}
	for _, r := range events {
		if e, err := a.Codec.Decode(r.Name, r.Data); err == nil {
			if asked, ok := e.(intent.Requested); ok {
				fresh = append(fresh, asked.Request.Waiting(r.Position))
			}
		}
	}
	return fresh
}

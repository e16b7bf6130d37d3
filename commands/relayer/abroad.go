package relayer

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// Abroad wakes the lanes of a process for intents whose queue another process feeds: the
// lanes there are told, and those here would find out at the next poll.
type Abroad struct {
	Store commands.Store
	Codec event.Codec[intent.Event]
	// Feeds reports whether this process feeds the queue itself.
	Feeds func() bool
	// Fed is that of [Feeder].
	Fed func(fresh []intent.Waiting, more bool)
}

// fedAfter is by when an intent that was recorded is in the queue, mostly. What is not is
// found by the poll.
const fedAfter = 30 * time.Millisecond

// Run goes on until ctx ends or the store fails; then it may be run again.
func (a Abroad) Run(ctx context.Context) error {
	head, err := a.Store.Head(ctx)
	if err != nil {
		return err
	}
	asked := event.Filter{Names: []string{"intent.requested."}}
	for batch, err := range a.Store.Subscribe(ctx, head, asked, newsMax) {
		if err != nil {
			return err
		}
		fresh := a.fresh(batch.Events)
		if len(fresh) == 0 {
			continue
		}
		if err := commands.Pause(ctx, fedAfter); err != nil {
			return err
		}
		a.Fed(fresh, false)
	}
	return ctx.Err()
}

// fresh are the intents that were asked for, unless this process feeds: then the feeder
// tells of them. What cannot be read is for the feeder to stop at.
func (a Abroad) fresh(events []event.Recorded) (fresh []intent.Waiting) {
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

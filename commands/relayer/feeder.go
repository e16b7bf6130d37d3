package relayer

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// Reader is the name of the feeder's checkpoint and lease.
const Reader = "relayer"

const feedMax = 1000 // events folded into the queue in one go

// Feeder folds events of intents into their work queue. One replica at a time runs it;
// the checkpoint's compare-and-set is what keeps two from both applying.
type Feeder struct {
	Store       commands.Store
	Queue       Queue
	Checkpoints commands.Checkpoints
	Codec       event.Codec[intent.Event]
	// Fed is called when there may be intents to claim, to wake the lanes of this process.
	Fed func()
	Log *slog.Logger
}

// Run feeds the queue until ctx ends or the checkpoint was moved by another.
func (f *Feeder) Run(ctx context.Context) error {
	from, err := f.Checkpoints.Checkpoint(ctx, Reader)
	if err != nil {
		return err
	}
	filter := event.Filter{Streams: []string{intent.StreamPrefix}}
	for batch, err := range f.Store.Subscribe(ctx, from, filter, feedMax) {
		if err != nil {
			return err
		}
		if from, err = f.apply(ctx, from, batch); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (f *Feeder) apply(ctx context.Context, from event.Position, batch event.Batch) (event.Position, error) {
	if batch.Next == from {
		return from, nil
	}
	changes, stuck := f.plans(batch.Events)
	if stuck != nil {
		// Going on without a fact would lose an intent in silence.
		head, ok := batch.Before(stuck)
		if !ok {
			return from, stuck
		}
		batch = head
	}
	if err := f.Queue.Apply(ctx, Reader, from, batch.Next, changes); err != nil {
		if errors.Is(err, event.ErrMoved) {
			f.Log.Info("another replica feeds the queue of intents", "position", from)
		}
		return from, err
	}
	if f.Fed != nil && slices.ContainsFunc(changes, func(c intent.Change) bool { return c.Place == nil }) {
		f.Fed()
	}
	return batch.Next, stuck
}

// plans are the changes that events make, up to the first that cannot be read.
func (f *Feeder) plans(events []event.Recorded) ([]intent.Change, error) {
	changes := make([]intent.Change, 0, len(events))
	for _, r := range events {
		id, err := intent.ParseStream(r.Stream)
		if err != nil {
			return changes, &event.Stuck{At: r.Position, Err: err}
		}
		e, err := f.Codec.Decode(r.Name, r.Data)
		if err != nil {
			return changes, &event.Stuck{At: r.Position, Err: err}
		}
		if c, ok := intent.Plan(id, e, r.Position); ok {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

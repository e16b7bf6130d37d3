package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Reader is the name of the feeder's checkpoint and lease.
const Reader = "scheduler"

const feedMax = 1000 // events folded into the queue in one go

// Feeder folds transaction events into the due queue. One replica at a time runs
// it; the checkpoint's compare-and-set is what keeps two from both applying.
type Feeder struct {
	Store       commands.Store
	Queue       Queue
	Checkpoints commands.Checkpoints
	Codec       event.Codec[tx.Event]
	Schedule    tx.Schedule
	Lead        time.Duration // how long before eligibility the first attempt is due
	// Fed is called with each new checkpoint, to wake the workers of this process.
	Fed   func(at event.Position)
	Crash func(point string)
	Log   *slog.Logger
}

// Run feeds the queue until ctx ends or the checkpoint was moved by another.
func (f *Feeder) Run(ctx context.Context) error {
	from, err := f.Checkpoints.Checkpoint(ctx, Reader)
	if err != nil {
		return err
	}
	filter := event.Filter{Streams: []string{tx.StreamPrefix}}
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
	if len(batch.Events) == 0 && batch.Next == from {
		return from, nil
	}
	changes, stuck := f.plans(batch.Events)
	if stuck != nil {
		// Going on without a fact would lose a transaction in silence.
		head, ok := batch.Before(stuck)
		if !ok {
			return from, stuck
		}
		batch = head
	}
	if err := f.Queue.Apply(ctx, Reader, from, batch.Next, changes); err != nil {
		if errors.Is(err, event.ErrMoved) {
			f.Log.Info("another replica feeds the queue", "position", from)
		}
		return from, err
	}
	if f.Crash != nil {
		f.Crash("queue.applied")
	}
	if f.Fed != nil {
		f.Fed(batch.Next)
	}
	return batch.Next, stuck
}

// plans are the changes that events make, up to the first that cannot be read.
func (f *Feeder) plans(events []event.Recorded) ([]tx.Change, error) {
	changes := make([]tx.Change, 0, len(events))
	for _, r := range events {
		c, ok, err := f.plan(r)
		if err != nil {
			return changes, &event.Stuck{At: r.Position, Err: err}
		}
		if ok {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

func (f *Feeder) plan(r event.Recorded) (tx.Change, bool, error) {
	id, hash, err := tx.ParseStream(r.Stream)
	if err != nil {
		return tx.Change{}, false, err
	}
	e, err := f.Codec.Decode(r.Name, r.Data)
	if err != nil {
		return tx.Change{}, false, err
	}
	// The expiry cap on a recorded attempt's pause matters only to a queue that
	// is being rebuilt: a live row's next action was set by the worker itself.
	c, ok := Plan(f.Schedule, f.Lead, id, hash, e, r.At)
	return c, ok, nil
}

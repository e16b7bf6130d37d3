package follower

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Feeding folds the events of a log into changes to a work queue. One replica at a time
// should run it. The checkpoint's compare-and-set keeps two replicas from both applying a
// batch.
type Feeding[C any] struct {
	Store       port.Store
	Checkpoints port.Checkpoints
	Reader      string // the name of the checkpoint
	Filter      eventlog.Filter
	// Ahead, when set, is called with the events of a batch before they are planned, for example to
	// read side by side what their plans need.
	Ahead func(ctx context.Context, events []eventlog.Recorded)
	// Plan returns the changes to the queue that an event causes. An error stops the
	// feeding before the event, because skipping an event would lose work silently.
	Plan func(ctx context.Context, r eventlog.Recorded) ([]C, error)
	// Apply makes changes and moves the checkpoint in one transaction. It returns
	// eventlog.ErrMoved if the checkpoint is not at from.
	Apply func(ctx context.Context, from, to eventlog.Position, changes []C) error
	// Moved, when set, is called with the position up to which the queue is fed.
	Moved func(at eventlog.Position)
	Log   *slog.Logger
}

const feedMax = 1000 // events folded per batch

// Run feeds the queue until ctx ends, another replica moves the checkpoint, or an event
// cannot be read. In the last case the error is an *eventlog.Stuck, and all earlier events
// have been applied.
func (f Feeding[C]) Run(ctx context.Context) error {
	from, err := f.Checkpoints.Checkpoint(ctx, f.Reader)
	if err != nil {
		return err
	}
	f.moved(from)
	for batch, err := range f.Store.Subscribe(ctx, from, f.Filter, feedMax) {
		if err != nil {
			return err
		}
		if from, err = f.Fold(ctx, from, batch); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Fold folds a batch that starts after from, and returns the position up to which the queue
// is now fed. Its errors are the errors of [Feeding.Run].
func (f Feeding[C]) Fold(ctx context.Context, from eventlog.Position, batch eventlog.Batch) (eventlog.Position, error) {
	if batch.Next == from {
		return from, nil
	}
	changes, stuck := f.plans(ctx, batch.Events)
	if stuck != nil {
		head, ok := batch.Before(stuck)
		if !ok {
			return from, stuck
		}
		batch = head
	}
	if err := f.Apply(ctx, from, batch.Next, changes); err != nil {
		if errors.Is(err, eventlog.ErrMoved) {
			f.Log.Info("another replica feeds the queue", "reader", f.Reader, "position", from)
		}
		return from, err
	}
	f.moved(batch.Next)
	return batch.Next, stuck
}

func (f Feeding[C]) moved(at eventlog.Position) {
	if f.Moved != nil {
		f.Moved(at)
	}
}

// plans returns the changes of events, up to the first event that cannot be read.
func (f Feeding[C]) plans(ctx context.Context, events []eventlog.Recorded) ([]C, error) {
	if f.Ahead != nil {
		f.Ahead(ctx, events)
	}
	changes := make([]C, 0, len(events))
	for _, r := range events {
		planned, err := f.Plan(ctx, r)
		if err != nil {
			return changes, &eventlog.Stuck{At: r.Position, Err: err}
		}
		changes = append(changes, planned...)
	}
	return changes, nil
}

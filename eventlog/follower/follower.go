// Package follower reads the log in batches from a checkpoint, and moves the checkpoint behind what
// is handled. After a crash a batch may be handled again, but none is left out. It imports eventlog
// and its ports alone.
package follower

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/pause"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// The shortest and longest pause between two reads of a checkpoint.
const (
	lookFirst = 2 * time.Millisecond
	lookLast  = 50 * time.Millisecond
)

// Reached waits until a reader's checkpoint has reached a position.
func Reached(ctx context.Context, to eventlog.Position, checkpoint func(context.Context) (eventlog.Position, error)) error {
	for wait := lookFirst; ; wait = min(2*wait, lookLast) {
		if at, err := checkpoint(ctx); err != nil || at >= to {
			return err
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// Follower reads the log from its own checkpoint and handles each event at least once:
// after a crash between handling and moving the checkpoint it handles the batch again.
type Follower struct {
	Store       port.Store
	Checkpoints port.Checkpoints
	Reader      string // the name of the checkpoint
	Filter      eventlog.Filter
	Max         int // events per batch
	// Moved, when set, is called with the checkpoint's position: once at the start and
	// after each move.
	Moved func(at eventlog.Position)
}

// Run handles batch after batch until ctx ends or handle fails. The checkpoint moves after
// handle has returned nil. It also moves past events that the filter excludes. If handle
// returns an [eventlog.Stuck], Run stops before that event, not before its batch.
func (f Follower) Run(ctx context.Context, handle func(ctx context.Context, events []eventlog.Recorded) error) error {
	from, err := f.Checkpoints.Checkpoint(ctx, f.Reader)
	if err != nil {
		return fmt.Errorf("checkpoint of %s: %w", f.Reader, err)
	}
	f.moved(from)
	for batch, err := range f.Store.Subscribe(ctx, from, f.Filter, f.Max) {
		if err != nil {
			return err
		}
		if len(batch.Events) > 0 {
			if err := handle(ctx, batch.Events); err != nil {
				return f.before(ctx, from, batch, handle, err)
			}
		}
		if batch.Next == from {
			continue
		}
		if err := f.Checkpoints.MoveCheckpoint(ctx, f.Reader, from, batch.Next); err != nil {
			return err
		}
		from = batch.Next
		f.moved(from)
	}
	return ctx.Err()
}

// before handles the events of a batch that precede the stuck event, so that no older event
// waits for it. It returns the error that stopped the follower.
func (f Follower) before(ctx context.Context, from eventlog.Position, batch eventlog.Batch, handle func(context.Context, []eventlog.Recorded) error, stuck error) error {
	head, ok := batch.Before(stuck)
	if !ok {
		return stuck
	}
	if err := handle(ctx, head.Events); err != nil {
		return errors.Join(stuck, err)
	}
	if err := f.Checkpoints.MoveCheckpoint(ctx, f.Reader, from, head.Next); err != nil {
		return errors.Join(stuck, err)
	}
	f.moved(head.Next)
	return stuck
}

func (f Follower) moved(at eventlog.Position) {
	if f.Moved != nil {
		f.Moved(at)
	}
}

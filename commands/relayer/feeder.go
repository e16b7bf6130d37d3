package relayer

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
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
	changes, stuck := f.plans(ctx, batch.Events)
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
func (f *Feeder) plans(ctx context.Context, events []event.Recorded) ([]intent.Change, error) {
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
		if _, back := e.(intent.Reorged); back {
			revived, err := f.revive(ctx, id, r)
			if err != nil {
				return changes, err
			}
			changes = append(changes, revived...)
			continue
		}
		if c, ok := intent.Plan(id, e, r.Position); ok {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// revive brings back the row of an intent whose end a block has taken along. Without it
// the intent would wait for ever once its place is taken from it. The row follows from
// what stands in the stream before; that is seldom asked for.
func (f *Feeder) revive(ctx context.Context, id chain.IntentID, at event.Recorded) ([]intent.Change, error) {
	var s intent.State
	var asked event.Position
	for r, err := range f.Store.ReadStream(ctx, at.Stream, 0) {
		if err != nil {
			return nil, &event.Stuck{At: at.Position, Err: err}
		}
		if r.Version > at.Version {
			break
		}
		e, err := f.Codec.Decode(r.Name, r.Data)
		if err != nil {
			return nil, &event.Stuck{At: at.Position, Err: err}
		}
		if _, first := e.(intent.Requested); first {
			asked = r.Position
		}
		s = s.Evolve(e)
	}
	w := s.Requested.Request.Waiting(asked)
	changes := []intent.Change{{ID: id, Open: &w}}
	if s.Place != nil {
		changes = append(changes, intent.Change{ID: id, Place: s.Place})
	}
	return changes, nil
}

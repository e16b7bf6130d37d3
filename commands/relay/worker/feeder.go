package worker

import (
	"context"
	"log/slog"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Reader is the name of the feeder's checkpoint and lease.
const Reader = "relayer"

// Feeder folds events of intents into their work queue. One replica at a time should run
// it. The checkpoint's compare-and-set keeps two replicas from both applying a batch.
type Feeder struct {
	Store       port.Store
	Queue       Queue
	Checkpoints port.Checkpoints
	Codec       eventlog.Codec[intent.Event]
	// Fed is called when there may be intents to claim, to wake the lanes of this process.
	// fresh are new intents; more means that any lane may find others besides.
	Fed func(fresh []intent.Waiting, more bool)
	// Moved is called with the position up to which the queue is fed; nil does nothing.
	Moved func(at eventlog.Position)
	Log   *slog.Logger

	open openIntents
}

// Run feeds the queue until ctx ends, another replica moves the checkpoint, or an event
// cannot be read.
func (f *Feeder) Run(ctx context.Context) error { return f.feeding().Run(ctx) }

func (f *Feeder) feeding() follower.Feeding[intent.Change] {
	return follower.Feeding[intent.Change]{
		Store: f.Store, Checkpoints: f.Checkpoints, Reader: Reader,
		Filter: eventlog.Filter{Streams: []string{intent.StreamPrefix}}, Plan: f.plan, Apply: f.apply, Moved: f.Moved, Log: f.Log,
	}
}

func (f *Feeder) apply(ctx context.Context, from, to eventlog.Position, changes []intent.Change) error {
	if err := f.Queue.Apply(ctx, Reader, from, to, changes); err != nil {
		return err
	}
	if fresh, more := f.freed(changes); f.Fed != nil && (len(fresh) > 0 || more) {
		f.Fed(fresh, more)
	}
	return nil
}

// freed returns the intents that changes make claimable: an intent itself, or the next of
// its ordering group when it has ended. more means that an intent was unknown, so all lanes
// have to look.
func (f *Feeder) freed(changes []intent.Change) (fresh []intent.Waiting, more bool) {
	for _, c := range changes {
		switch {
		case c.Open != nil:
			f.open.add(*c.Open)
			fresh = append(fresh, *c.Open)
		case c.Close:
			next, unknown := f.open.remove(c.ID)
			fresh, more = append(fresh, next...), more || unknown
		case c.Requeue:
			w, known := f.open.all[c.ID]
			if known {
				fresh = append(fresh, w)
			}
			more = more || !known
		}
	}
	return fresh, more
}

// plan returns the changes that an event causes.
func (f *Feeder) plan(ctx context.Context, r eventlog.Recorded) ([]intent.Change, error) {
	id, err := intent.ParseStream(r.Stream)
	if err != nil {
		return nil, err
	}
	e, err := f.Codec.Decode(r.Name, r.Data)
	if err != nil {
		return nil, err
	}
	if _, back := e.(intent.Reorged); back {
		return f.revive(ctx, id, r)
	}
	if c, ok := intent.Plan(id, e, r.Position); ok {
		return []intent.Change{c}, nil
	}
	return nil, nil
}

// revive restores the queue row of an intent whose end was revoked by a reorg. Without the
// row the intent would wait for ever once its place is taken from it. The row is rebuilt
// from the earlier events of the stream; this is rare.
func (f *Feeder) revive(ctx context.Context, id chain.IntentID, at eventlog.Recorded) ([]intent.Change, error) {
	var s intent.State
	var asked eventlog.Position
	for r, err := range f.Store.ReadStream(ctx, at.Stream, 0) {
		if err != nil {
			return nil, err
		}
		if r.Version > at.Version {
			break
		}
		e, err := f.Codec.Decode(r.Name, r.Data)
		if err != nil {
			return nil, err
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

package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Reader is the name of the feeder's checkpoint and lease.
const Reader = "scheduler"

// Feeder folds transaction events into the due queue. One replica at a time should run it.
// The checkpoint's compare-and-set keeps two replicas from both applying a batch.
type Feeder struct {
	Store       port.Store
	Queue       Queue
	Checkpoints port.Checkpoints
	Codec       eventlog.Codec[tx.Event]
	Schedule    tx.Schedule
	Lead        time.Duration // how long before eligibility the first attempt is due
	// Fed is called with each new checkpoint, to wake the workers of this process.
	Fed   func(at eventlog.Position)
	Crash func(point string)
	Log   *slog.Logger

	turn  commands.Turn // serializes changes to the queue
	terms earlier       // of the batch that is being planned
}

// Run feeds the queue until ctx ends, another replica moves the checkpoint, or an event
// cannot be read.
func (f *Feeder) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	f.turn = commands.NewTurn()
	var refilling sync.WaitGroup
	refilling.Go(func() { f.refill(ctx) })
	defer refilling.Wait()
	defer cancel()
	return follower.Feeding[tx.Change]{
		Store: f.Store, Checkpoints: f.Checkpoints, Reader: Reader,
		Filter: eventlog.Filter{Streams: []string{tx.StreamPrefix}},
		Ahead:  f.ahead, Plan: f.plan, Apply: f.apply, Log: f.Log,
	}.Run(ctx)
}

func (f *Feeder) apply(ctx context.Context, from, to eventlog.Position, changes []tx.Change) error {
	end, err := f.turn.Take(ctx)
	if err != nil {
		return err
	}
	err = f.Queue.Apply(ctx, Reader, from, to, changes)
	end()
	if err != nil {
		return err
	}
	if f.Crash != nil {
		f.Crash("queue.applied")
	}
	if f.Fed != nil {
		f.Fed(to)
	}
	return nil
}

// plan returns the change that an event causes, if any.
func (f *Feeder) plan(_ context.Context, r eventlog.Recorded) ([]tx.Change, error) {
	id, hash, err := tx.ParseStream(r.Stream)
	if err != nil {
		return nil, err
	}
	e, err := f.Codec.Decode(r.Name, r.Data)
	if err != nil {
		return nil, err
	}
	// The expiry cap on a recorded attempt's pause matters only in a rebuild: the worker
	// itself has set a live row's next action.
	if e, ok := e.(tx.Resubmitted); ok {
		return f.join(id, hash, e, r)
	}
	c, ok := Plan(f.Schedule, f.Lead, id, hash, e, r.At)
	if !ok {
		return nil, nil
	}
	if c.Open != nil {
		c.Open.Client = turnOf(c.Open.Client, r.Meta.Actor)
	}
	return []tx.Change{c}, nil
}

// relayActor is the actor of transactions that the relay has signed, as in domain/relay/lane, on
// which delivery does not depend.
const relayActor = "relayer"

// turnOf returns the client whose turn and quota a transaction uses. Transactions signed by
// the relay use the service's own. Clients share its lanes, so one client's backlog would
// delay other clients' attempts at higher nonces.
func turnOf(client, actor string) string {
	if actor == relayActor {
		return ""
	}
	return access.ClientOf(client, actor)
}

package canceler

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/group"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Reader is the name of the process manager's checkpoint and lease.
const Reader = "canceler"

const followMax = 500 // events per batch

// follower is the process manager's memory while it holds its lease: the position of the
// last cancel of recent groups; 0 for a group without one.
type follower struct {
	*Canceler
	last map[group.ID]event.Position
}

const groupsMax = 10_000 // groups remembered

// Run finishes recorded cancels until ctx ends or the store fails. One replica at a time
// should run it; a second one would add nothing.
func (c *Canceler) Run(ctx context.Context) error {
	f := commands.Follower{
		Store: c.Store, Checkpoints: c.Checkpoints, Reader: Reader, Max: followMax, Moved: c.Moved,
		Filter: event.Filter{Names: []string{"group.canceled.", "group.joined."}},
	}
	memory := follower{c, map[group.ID]event.Position{}}
	return f.Run(ctx, func(ctx context.Context, events []event.Recorded) error {
		for _, e := range events {
			if err := memory.follow(ctx, e); err != nil {
				return &event.Stuck{At: e.Position, Err: err}
			}
		}
		return nil
	})
}

// grace is how long the recorder of a cancel may finish it alone. Two processes on it would
// cause conflicts.
const grace = time.Second

func (f follower) follow(ctx context.Context, recorded event.Recorded) error {
	e, err := f.Groups.Codec.Decode(recorded.Name, recorded.Data)
	if err != nil {
		return err
	}
	id, err := group.ParseStream(recorded.Stream)
	if err != nil {
		return err
	}
	meta := event.Meta{Correlation: recorded.Meta.Correlation, Causation: recorded.ID, Actor: Reader, Trace: recorded.Meta.Trace}
	switch e := e.(type) {
	case group.Canceled:
		f.last[id] = recorded.Position
		// The event's time is the store's: if this clock is behind, the pause must not
		// exceed grace.
		if err := commands.Pause(ctx, min(recorded.At.Add(grace).Sub(f.Now()), grace)); err != nil {
			return err
		}
		r, err := f.Groups.Load(ctx, recorded.Stream)
		if err != nil {
			return err
		}
		_, err = f.carry(ctx, id, canceled(r.State), meta)
		return err
	case group.Joined:
		if e.AccessKey == nil {
			return nil // it joined before the cancel was recorded
		}
		return f.late(ctx, id, e, meta)
	}
	return nil
}

// late cancels a transaction that was accepted before its group was canceled and joined
// after that, because the chain had to confirm its key first.
func (f follower) late(ctx context.Context, id group.ID, joined group.Joined, meta event.Meta) error {
	last, err := f.lastCancel(ctx, id)
	if err != nil || last == 0 {
		return err
	}
	for e, err := range f.Store.ReadStream(ctx, tx.Stream(id.Chain, joined.Hash), 0) {
		if err != nil {
			return err
		}
		if e.Position > last {
			return nil // accepted later: the cancel does not cover it
		}
		break
	}
	_, err = f.carry(ctx, id, []group.Member{{Hash: joined.Hash, Nonce: joined.Nonce}}, meta)
	return err
}

func (f follower) lastCancel(ctx context.Context, id group.ID) (event.Position, error) {
	if last, known := f.last[id]; known {
		return last, nil
	}
	var last event.Position
	for e, err := range f.Store.ReadStream(ctx, id.Stream(), 0) {
		if err != nil {
			return 0, err
		}
		fact, err := f.Groups.Codec.Decode(e.Name, e.Data)
		if err != nil {
			return 0, err
		}
		if _, ok := fact.(group.Canceled); ok {
			last = e.Position
		}
	}
	if len(f.last) >= groupsMax {
		clear(f.last)
	}
	f.last[id] = last
	return last, nil
}

package guard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// view is the last read state of a stream. It reads on from there, not from the beginning,
// because a budget's stream has no end. It is safe for concurrent use. Commands of one
// process take turns, and so do not conflict in the log.
type view[S handler.Decider[S, C, E], C, E any] struct {
	handler handler.Handler[S, C, E]
	stream  eventlog.Stream

	turn  turn
	held  handler.Result[S]
	read  time.Time // zero: never
	since int       // events since the last possible snapshot

	// begun counts started reads of the stream; ended is the number of the last successful
	// one. A read serves all callers that asked before it began. Many lanes ask in each
	// turn, and would otherwise wait for one read each.
	begun atomic.Uint64
	ended uint64

	// last is the state after the last turn, for callers that need not wait for it.
	last atomic.Pointer[sight[S]]
}

// sight is a state, and when it was read.
type sight[S any] struct {
	state S
	read  time.Time
}

// conflictsMax is how often a command is decided again after conflicts.
const conflictsMax = 64

// at returns the state as of since or later. It returns a state that is new enough at once,
// even while another caller has the turn and waits for the store.
func (v *view[S, C, E]) at(ctx context.Context, since, now time.Time) (S, error) {
	if last := v.last.Load(); last != nil && !last.read.Before(since) {
		return last.state, nil
	}
	if err := v.turn.take(ctx); err != nil {
		var none S
		return none, err
	}
	defer v.turn.give()
	if v.read.IsZero() || v.read.Before(since) {
		if err := v.readOn(ctx, now); err != nil {
			return v.held.State, err
		}
	}
	return v.held.State, nil
}

// now returns the current state.
func (v *view[S, C, E]) now(ctx context.Context, now time.Time) (S, error) {
	asked := v.begun.Load()
	if err := v.turn.take(ctx); err != nil {
		var none S
		return none, err
	}
	defer v.turn.give()
	err := v.readSince(ctx, asked, now)
	return v.held.State, err
}

// readSince reads, unless a read that began after asked has succeeded. The caller has the
// turn.
func (v *view[S, C, E]) readSince(ctx context.Context, asked uint64, now time.Time) error {
	if v.ended > asked {
		return nil
	}
	return v.readOn(ctx, now)
}

// readOn reads the events recorded since. The caller has the turn.
func (v *view[S, C, E]) readOn(ctx context.Context, now time.Time) (err error) {
	number := v.begun.Add(1)
	defer func() {
		if err == nil {
			v.ended = number
		}
	}()
	if v.held.Version == 0 {
		held, err := v.handler.Load(ctx, v.stream)
		if err != nil {
			return err
		}
		v.held, v.read = held, now
		v.leave()
		return nil
	}
	for r, err := range v.handler.Store.ReadStream(ctx, v.stream, v.held.Version) {
		if err != nil {
			return fmt.Errorf("read %s: %w", v.stream, err)
		}
		e, err := v.handler.Codec.Decode(r.Name, r.Data)
		if err != nil {
			return fmt.Errorf("%s version %d: %w", v.stream, r.Version, err)
		}
		v.held = handler.Result[S]{State: v.held.State.Evolve(e), Version: r.Version, Link: r.Linked()}
		v.since++
	}
	v.read = now
	v.leave()
	v.keep(ctx)
	return nil
}

func (v *view[S, C, E]) leave() { v.last.Store(&sight[S]{v.held.State, v.read}) }

// keep stores a snapshot, so that the next read after a restart need not read the whole
// stream.
func (v *view[S, C, E]) keep(ctx context.Context) {
	if v.handler.Keep(ctx, v.stream, v.held, v.since) {
		v.since = 0
	}
}

// handle handles a command on the stream's current state. On a refusal it returns the state
// that refused.
func (v *view[S, C, E]) handle(ctx context.Context, c C, meta eventlog.Meta, now time.Time) (S, error) {
	asked := v.begun.Load()
	var none S
	o, err := handler.Begin(v.handler.Random, meta)
	if err != nil {
		return none, err
	}
	if err := v.turn.take(ctx); err != nil {
		return none, err
	}
	defer v.turn.give()
	for range conflictsMax {
		if err := v.readSince(ctx, asked, now); err != nil {
			return v.held.State, err
		}
		asked = v.begun.Load() // after a conflict
		next, err := v.handler.HandleOnce(ctx, v.stream, v.held, c, o)
		if err == nil {
			v.held, v.since = next, v.since+next.Added
			v.leave()
			return next.State, nil
		}
		var conflict *eventlog.ConflictError
		if !errors.As(err, &conflict) {
			return v.held.State, err
		}
	}
	return v.held.State, fmt.Errorf("%s got new events %d times during the decision", v.stream, conflictsMax)
}

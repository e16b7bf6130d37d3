package guard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// view is a stream as it was read last. It reads on from there, and not from the
// beginning: a budget's stream has no end. It is safe for concurrent use; commands of one
// process take turns, and so do not meet in the log.
type view[S commands.Decider[S, C, E], C, E any] struct {
	handler commands.Handler[S, C, E]
	stream  event.Stream

	turn  turn
	held  commands.Result[S]
	read  time.Time // zero is never
	since int       // events since there may have been a snapshot

	// begun counts reads of the stream that have begun; ended is the number of the last one
	// that succeeded. A read serves all callers that asked before it began: each of many
	// lanes asks in each turn, and they would wait for one read each.
	begun atomic.Uint64
	ended uint64

	// last is what whoever had the turn has left, for those who need not wait for it.
	last atomic.Pointer[sight[S]]
}

// sight is a state, and when it was read.
type sight[S any] struct {
	state S
	read  time.Time
}

// conflictsMax is how often a command is decided anew when others have appended.
const conflictsMax = 64

// at returns the state as it was at a time or later. A state that is new enough it returns
// at once, also while somebody else has the turn and waits for the store.
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

// now is the state as it stands.
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

// readSince reads, unless a read that began after another one has succeeded. It is the
// caller's turn.
func (v *view[S, C, E]) readSince(ctx context.Context, asked uint64, now time.Time) error {
	if v.ended > asked {
		return nil
	}
	return v.readOn(ctx, now)
}

// readOn reads what was recorded since. It is the caller's turn.
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
		v.held = commands.Result[S]{State: v.held.State.Evolve(e), Version: r.Version, Link: r.Linked()}
		v.since++
	}
	v.read = now
	v.leave()
	v.keep(ctx)
	return nil
}

func (v *view[S, C, E]) leave() { v.last.Store(&sight[S]{v.held.State, v.read}) }

// keep spares who reads the stream next, after a restart, the reading of all of it.
func (v *view[S, C, E]) keep(ctx context.Context) {
	if v.handler.Keep(ctx, v.stream, v.held, v.since) {
		v.since = 0
	}
}

// handle carries a command out on the stream as it stands. A refusal comes back with the
// state that refused.
func (v *view[S, C, E]) handle(ctx context.Context, c C, o commands.Origin, now time.Time) (S, error) {
	asked := v.begun.Load()
	if err := v.turn.take(ctx); err != nil {
		var none S
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
		var conflict *event.ConflictError
		if !errors.As(err, &conflict) {
			return v.held.State, err
		}
	}
	return v.held.State, fmt.Errorf("%s moved on %d times while it was decided upon", v.stream, conflictsMax)
}

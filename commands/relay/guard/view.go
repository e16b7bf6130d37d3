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
// because a budget's stream has no end. It is safe for concurrent use.
//
// Its callers wait in a line. The caller at its head carries out a round for several callers:
// one read, which begins after these calls, and one append with the events of their commands.
// So hundreds of lanes wait for a few appends, and not for an append of each lane before them.
// Commands of one process do not conflict in the log.
type view[S handler.Decider[S, C, E], C, E any] struct {
	handler handler.Handler[S, C, E]
	stream  eventlog.Stream

	line line[S, C]

	// These belong to the caller at the head of the line.
	held  handler.Result[S]
	read  time.Time // zero: never
	since int       // events since the last possible snapshot

	// last is the state after the last round, for callers that need not wait for it.
	last atomic.Pointer[sight[S]]
}

// sight is a state, and when it was read.
type sight[S any] struct {
	state S
	read  time.Time
}

// conflictsMax is how often commands are decided again after conflicts.
const conflictsMax = 64

// at returns the state as of since or later. It returns a state that is new enough at once,
// even while other callers wait for the store.
func (v *view[S, C, E]) at(ctx context.Context, since, now time.Time) (S, error) {
	if last := v.last.Load(); last != nil && !last.read.Before(since) {
		return last.state, nil
	}
	return v.line.join(ctx, &ask[S, C]{since: since, now: now}, v.round)
}

// now returns the current state.
func (v *view[S, C, E]) now(ctx context.Context, now time.Time) (S, error) {
	return v.line.join(ctx, &ask[S, C]{now: now}, v.round)
}

// handle handles a command on the stream's current state. On a refusal it returns the state
// that refused.
func (v *view[S, C, E]) handle(ctx context.Context, c C, meta eventlog.Meta, now time.Time) (S, error) {
	return v.line.join(ctx, &ask[S, C]{command: &handler.Asked[C]{Command: c, Meta: meta}, now: now}, v.round)
}

// round answers some callers; see [line.join].
func (v *view[S, C, E]) round(ctx context.Context, some []*ask[S, C]) error {
	var commands []handler.Asked[C]
	var askers []*ask[S, C] // of commands
	stale, now := false, time.Time{}
	for _, a := range some {
		if a.command != nil {
			commands, askers = append(commands, *a.command), append(askers, a)
		}
		if a.now.After(now) {
			now = a.now
		}
		stale = stale || a.since.IsZero() || v.read.Before(a.since)
	}
	if stale {
		if err := v.readOn(ctx, now); err != nil {
			return err
		}
	}
	for _, a := range some {
		if a.command == nil {
			a.answer(v.held.State, nil)
		}
	}
	if len(commands) == 0 {
		return nil
	}
	answers, err := v.decide(ctx, commands, now)
	if err != nil {
		return err
	}
	for i, answer := range answers {
		askers[i].answer(answer.State, answer.Refused)
	}
	return nil
}

// decide decides commands on the state that was just read.
func (v *view[S, C, E]) decide(ctx context.Context, commands []handler.Asked[C], now time.Time) ([]handler.Answer[S], error) {
	for range conflictsMax {
		next, answers, err := v.handler.DoEachOnce(ctx, v.stream, v.held, commands)
		if err == nil {
			v.held, v.since = next, v.since+next.Added
			v.leave()
			return answers, nil
		}
		var conflict *eventlog.ConflictError
		if !errors.As(err, &conflict) {
			return nil, err
		}
		if err := v.readOn(ctx, now); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s got new events %d times during the decision", v.stream, conflictsMax)
}

// readOn reads the events recorded since.
func (v *view[S, C, E]) readOn(ctx context.Context, now time.Time) error {
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

// Package handler decides commands on the state of a stream, and appends the events. It is the only
// code that appends. A command counts once: after a lost answer it may be sent again, and after a
// conflict it is decided again on the new state. It imports eventlog and eventlog/port alone, and
// reads no clock.
package handler

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Decider is an aggregate's state S: it decides commands C and evolves by events E.
type Decider[S, C, E any] interface {
	Decide(C) ([]E, error)
	Evolve(E) S
}

// Origin identifies a command and its cause. ID is the command's own id. Event ids are
// derived from it, so a retry after a lost answer is recognized.
type Origin struct {
	ID   eventlog.ID
	Meta eventlog.Meta
	// Each, if set, returns the metadata of one event, which Meta does not have. i is the event's
	// place among the events of the append.
	Each func(i int, fact any) eventlog.Meta
}

// meta returns the metadata of one event of the command.
func (o Origin) meta(i int, fact any) eventlog.Meta {
	if o.Each == nil {
		return o.Meta
	}
	return o.Each(i, fact)
}

// Begin makes an origin with an id drawn from random.
func Begin(random io.Reader, meta eventlog.Meta) (Origin, error) {
	var id eventlog.ID
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return Origin{}, fmt.Errorf("draw a command id: %w", err)
	}
	return Origin{ID: id, Meta: meta}, nil
}

// Handler loads a stream, decides a command, appends the events, and decides again on
// conflict.
type Handler[S Decider[S, C, E], C, E any] struct {
	Store port.Store
	Codec eventlog.Codec[E]
	// Random draws the ids of commands, for Do and DoFrom.
	Random io.Reader
	// Snapshots, when set, shortens the reading of long streams.
	Snapshots *Snapshots[S]
	// Told, when set, is called once per successful append with the appended facts. It is
	// for metrics and traces, never for effects.
	Told func(Told[S, E])
	// Crash is called at the named points of [CrashPoints]; nil does nothing.
	Crash func(point string)
}

// Told is a command's facts, and the state before and after them.
type Told[S, E any] struct {
	Stream eventlog.Stream
	Before S
	After  S
	Facts  []E
	Meta   eventlog.Meta
}

// Result is the outcome of a command.
type Result[S any] struct {
	State   S
	Version eventlog.Version
	// Link is the link of the stream's last event. Zero on an existing stream means
	// unknown: the handler then reads it before appending.
	Link eventlog.Link
	// number of events this command appended
	Added int
	// Position is the position of the last event that this command appended.
	Position eventlog.Position
}

const (
	conflictsMax = 64 // attempts to decide one command
	unknownsMax  = 4  // attempts to append the same events
)

// Load folds a stream, starting from its snapshot if it has one. A stream that does not
// exist has the zero state and version 0.
func (h Handler[S, C, E]) Load(ctx context.Context, stream eventlog.Stream) (Result[S], error) {
	if h.Snapshots == nil {
		return h.fold(ctx, stream, nil)
	}
	if s, ok := h.Snapshots.find(ctx, stream); ok {
		if r, err := h.fold(ctx, stream, &s); !errors.Is(err, errForeign) {
			return r, err
		}
	}
	return h.fold(ctx, stream, nil)
}

// fold reads a whole stream, or from the event of a snapshot on.
func (h Handler[S, C, E]) fold(ctx context.Context, stream eventlog.Stream, from *eventlog.Snapshot) (r Result[S], err error) {
	var after eventlog.Version
	if from != nil {
		after = from.Version - 1
	}
	var last eventlog.Recorded
	read := 0
	for recorded, err := range h.Store.ReadStream(ctx, stream, after) {
		if err != nil {
			return r, fmt.Errorf("read %s: %w", stream, err)
		}
		if from != nil && read == 0 {
			ok := false
			if r.State, ok = h.Snapshots.open(*from, recorded); !ok {
				return Result[S]{}, errForeign
			}
		} else {
			e, err := h.Codec.Decode(recorded.Name, recorded.Data)
			if err != nil {
				return r, fmt.Errorf("%s version %d: %w", stream, recorded.Version, err)
			}
			r.State = r.State.Evolve(e)
		}
		r.Version, r.Link, last = recorded.Version, recorded.Linked(), recorded
		read++
	}
	if from != nil && read == 0 { // the stream is shorter than the snapshot's version
		return r, errForeign
	}
	if h.Snapshots != nil {
		h.Snapshots.keep(ctx, r.State, last, read)
	}
	return r, nil
}

// Do handles a command under a new id. A caller that repeats a command after a lost answer
// keeps its [Origin] and calls Handle instead.
func (h Handler[S, C, E]) Do(ctx context.Context, stream eventlog.Stream, c C, meta eventlog.Meta) (Result[S], error) {
	o, err := Begin(h.Random, meta)
	if err != nil {
		return Result[S]{}, err
	}
	return h.Handle(ctx, stream, c, o)
}

// DoFrom is to Do as HandleFrom is to Handle.
func (h Handler[S, C, E]) DoFrom(ctx context.Context, stream eventlog.Stream, r Result[S], c C, meta eventlog.Meta) (Result[S], error) {
	o, err := Begin(h.Random, meta)
	if err != nil {
		return r, err
	}
	return h.HandleFrom(ctx, stream, r, c, o)
}

// DoOnce is to Do as HandleOnce is to Handle.
func (h Handler[S, C, E]) DoOnce(ctx context.Context, stream eventlog.Stream, r Result[S], c C, meta eventlog.Meta) (Result[S], error) {
	o, err := Begin(h.Random, meta)
	if err != nil {
		return r, err
	}
	return h.HandleOnce(ctx, stream, r, c, o)
}

// Handle decides a command on the stream's current state and appends the events. On a
// refusal it returns the state that refused.
func (h Handler[S, C, E]) Handle(ctx context.Context, stream eventlog.Stream, c C, o Origin) (Result[S], error) {
	r, err := h.Load(ctx, stream)
	if err != nil {
		return r, err
	}
	return h.HandleFrom(ctx, stream, r, c, o)
}

// HandleFrom is Handle for a caller that has just loaded the stream, or expects it not to
// exist (the zero Result). A wrong expectation costs one more read.
func (h Handler[S, C, E]) HandleFrom(ctx context.Context, stream eventlog.Stream, r Result[S], c C, o Origin) (Result[S], error) {
	for range conflictsMax {
		next, err := h.HandleOnce(ctx, stream, r, c, o)
		var conflict *eventlog.ConflictError
		if !errors.As(err, &conflict) {
			return next, err
		}
		if r, err = h.Load(ctx, stream); err != nil {
			return r, err
		}
	}
	return r, fmt.Errorf("%s got new events %d times during the decision", stream, conflictsMax)
}

// HandleOnce is HandleFrom without the retry on conflict. It is for a command that depends
// on data read since the stream was loaded: after a conflict error the caller must read
// that data again.
func (h Handler[S, C, E]) HandleOnce(ctx context.Context, stream eventlog.Stream, r Result[S], c C, o Origin) (Result[S], error) {
	next, repeated, err := h.try(ctx, stream, r, c, o)
	if err == nil && repeated { // an earlier attempt of this command wrote the events
		return h.Load(ctx, stream)
	}
	return next, err
}

func (h Handler[S, C, E]) try(ctx context.Context, stream eventlog.Stream, r Result[S], c C, o Origin) (_ Result[S], repeated bool, _ error) {
	decided, err := r.State.Decide(c)
	if err != nil {
		r.Added, r.Position = 0, 0
		return r, false, err
	}
	return h.record(ctx, stream, r, decided, o)
}

// record appends decided events to a stream that stands at r.
func (h Handler[S, C, E]) record(ctx context.Context, stream eventlog.Stream, r Result[S], decided []E, o Origin) (_ Result[S], repeated bool, err error) {
	r.Added, r.Position = 0, 0
	if len(decided) == 0 {
		return r, false, nil
	}
	if r.Version > 0 && r.Link.IsZero() {
		if r.Link, err = h.link(ctx, stream, r.Version); err != nil {
			return r, false, err
		}
	}
	events := make([]eventlog.Event, len(decided))
	next := Result[S]{State: r.State, Link: r.Link, Added: len(decided)}
	for i, e := range decided {
		name, data, err := h.Codec.Encode(e)
		if err != nil {
			return r, false, fmt.Errorf("encode %s: %w", name, err)
		}
		events[i] = eventlog.Event{ID: eventlog.DeriveID(stream, o.ID, i), Name: name, Data: data, Meta: o.meta(i, e)}
		next.Link = next.Link.Next(stream, r.Version+eventlog.Version(i+1), events[i])
		events[i].Meta.Link = next.Link
		next.State = next.State.Evolve(e)
	}
	h.crash("append.before")
	appended, lost, err := h.append(ctx, stream, r.Version, events)
	if err != nil {
		return r, false, err
	}
	h.crash("append.after")
	next.Version, next.Position = appended.Version, appended.Position
	if appended.Repeated {
		// The ids match, but the earlier attempt may have had another time or trace.
		next.Link = eventlog.Link{}
	}
	// Events written by an earlier try of this same append were appended here; they are no
	// repetition.
	repeated = appended.Repeated && !lost
	if h.Told != nil && !repeated {
		h.Told(Told[S, E]{stream, r.State, next.State, decided, o.Meta})
	}
	return next, repeated, nil
}

// link reads the link of the event at a version.
func (h Handler[S, C, E]) link(ctx context.Context, stream eventlog.Stream, at eventlog.Version) (eventlog.Link, error) {
	for recorded, err := range h.Store.ReadStream(ctx, stream, at-1) {
		if err != nil {
			return eventlog.Link{}, fmt.Errorf("read %s: %w", stream, err)
		}
		return recorded.Linked(), nil
	}
	return eventlog.Link{}, nil // no such event: the append will fail with a conflict
}

// append retries the same events while the store cannot say whether they were written. lost
// means that the answer to the first try was lost.
func (h Handler[S, C, E]) append(ctx context.Context, stream eventlog.Stream, at eventlog.Version, events []eventlog.Event) (a eventlog.Appended, lost bool, err error) {
	for tries := range unknownsMax {
		a, err = h.Store.Append(ctx, stream, at, events...)
		lost = tries > 0
		if !errors.Is(err, eventlog.ErrUnknown) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return a, lost, fmt.Errorf("append to %s: %w", stream, err)
	}
	return a, lost, nil
}

func (h Handler[S, C, E]) crash(point string) {
	if h.Crash != nil {
		h.Crash(point)
	}
}

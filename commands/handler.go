package commands

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Decider is an aggregate's state S: it decides commands C and evolves by events E.
type Decider[S, C, E any] interface {
	Decide(C) ([]E, error)
	Evolve(E) S
}

// Origin says who wishes a command, and because of what. ID is the command's
// own: events derive their ids from it, so that trying again after a lost answer
// is recognised.
type Origin struct {
	ID   event.ID
	Meta event.Meta
}

// Begin makes an origin with an id drawn from random.
func Begin(random io.Reader, meta event.Meta) (Origin, error) {
	var id event.ID
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return Origin{}, fmt.Errorf("draw a command id: %w", err)
	}
	return Origin{ID: id, Meta: meta}, nil
}

// Handler reads, decides, appends, and decides again on conflict.
type Handler[S Decider[S, C, E], C, E any] struct {
	Store Store
	Codec event.Codec[E]
	// Snapshots, when set, spares the reading of long streams.
	Snapshots *Snapshots[S]
	// Told, when set, is called with what a command has appended, once for each
	// append that stands: for whoever counts or traces, and never for effects.
	Told func(Told[S, E])
	// Crash is called at the named points of [CrashPoints]; nil does nothing.
	Crash func(point string)
}

// Told is a command's facts, and the state before and after them.
type Told[S, E any] struct {
	Stream event.Stream
	Before S
	After  S
	Facts  []E
	Meta   event.Meta
}

// Result is what a command led to.
type Result[S any] struct {
	State   S
	Version event.Version
	// Link is that of the stream's last event. The zero Link of a stream that exists
	// says that it is not known: then the stream is read before anything is appended.
	Link event.Link
	// Added is how many events this command appended; 0 when it added nothing.
	Added int
	// Position is that of the last event that this command appended.
	Position event.Position
}

const (
	conflictsMax = 64 // decide again at most so often
	unknownsMax  = 4  // append the same events again at most so often
)

// Load folds a stream, from its snapshot on where there is one. A stream that does not
// exist is the zero state at version 0.
func (h Handler[S, C, E]) Load(ctx context.Context, stream event.Stream) (Result[S], error) {
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

// fold reads a stream: all of it, or from the event that a snapshot stands at.
func (h Handler[S, C, E]) fold(ctx context.Context, stream event.Stream, from *event.Snapshot) (r Result[S], err error) {
	var after event.Version
	if from != nil {
		after = from.Version - 1
	}
	var last event.Recorded
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
	if from != nil && read == 0 { // the stream is shorter than that
		return r, errForeign
	}
	if h.Snapshots != nil {
		h.Snapshots.keep(ctx, r.State, last, read)
	}
	return r, nil
}

// Handle carries a command out on the stream as it stands. A refusal comes back
// with the state that refused.
func (h Handler[S, C, E]) Handle(ctx context.Context, stream event.Stream, c C, o Origin) (Result[S], error) {
	r, err := h.Load(ctx, stream)
	if err != nil {
		return r, err
	}
	return h.HandleFrom(ctx, stream, r, c, o)
}

// HandleFrom is Handle for a caller who has just loaded the stream, or expects it
// not to exist (the zero Result): being wrong costs one more read.
func (h Handler[S, C, E]) HandleFrom(ctx context.Context, stream event.Stream, r Result[S], c C, o Origin) (Result[S], error) {
	for range conflictsMax {
		next, err := h.HandleOnce(ctx, stream, r, c, o)
		var conflict *event.ConflictError
		if !errors.As(err, &conflict) {
			return next, err
		}
		if r, err = h.Load(ctx, stream); err != nil {
			return r, err
		}
	}
	return r, fmt.Errorf("%s moved on %d times while it was decided upon", stream, conflictsMax)
}

// HandleOnce is HandleFrom for a caller whose command rests on what it has looked at
// since it loaded the stream: on a conflict, which is the error then, it has to look again.
func (h Handler[S, C, E]) HandleOnce(ctx context.Context, stream event.Stream, r Result[S], c C, o Origin) (Result[S], error) {
	next, repeated, err := h.try(ctx, stream, r, c, o)
	if err == nil && repeated { // what stands is what an earlier try wrote
		return h.Load(ctx, stream)
	}
	return next, err
}

func (h Handler[S, C, E]) try(ctx context.Context, stream event.Stream, r Result[S], c C, o Origin) (_ Result[S], repeated bool, _ error) {
	r.Added, r.Position = 0, 0
	decided, err := r.State.Decide(c)
	if err != nil || len(decided) == 0 {
		return r, false, err
	}
	if r.Version > 0 && r.Link.IsZero() {
		if r.Link, err = h.link(ctx, stream, r.Version); err != nil {
			return r, false, err
		}
	}
	events := make([]event.Event, len(decided))
	next := Result[S]{State: r.State, Link: r.Link, Added: len(decided)}
	for i, e := range decided {
		name, data, err := h.Codec.Encode(e)
		if err != nil {
			return r, false, fmt.Errorf("encode %s: %w", name, err)
		}
		events[i] = event.Event{ID: event.DeriveID(stream, o.ID, i), Name: name, Data: data, Meta: o.Meta}
		next.Link = next.Link.Next(stream, r.Version+event.Version(i+1), events[i])
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
		// The ids are these, but who came before may have had another time or trace.
		next.Link = event.Link{}
	}
	// What stands by an earlier try of this append was appended here, and not repeated.
	repeated = appended.Repeated && !lost
	if h.Told != nil && !repeated {
		h.Told(Told[S, E]{stream, r.State, next.State, decided, o.Meta})
	}
	return next, repeated, nil
}

// link reads the link of the event at a version.
func (h Handler[S, C, E]) link(ctx context.Context, stream event.Stream, at event.Version) (event.Link, error) {
	for recorded, err := range h.Store.ReadStream(ctx, stream, at-1) {
		if err != nil {
			return event.Link{}, fmt.Errorf("read %s: %w", stream, err)
		}
		return recorded.Linked(), nil
	}
	return event.Link{}, nil // there is no such event, and the append will be told so
}

// append tries the very same events again while nobody can say whether they stand. lost
// means that the answer to the first try was.
func (h Handler[S, C, E]) append(ctx context.Context, stream event.Stream, at event.Version, events []event.Event) (a event.Appended, lost bool, err error) {
	for tries := range unknownsMax {
		a, err = h.Store.Append(ctx, stream, at, events...)
		lost = tries > 0
		if !errors.Is(err, event.ErrUnknown) || ctx.Err() != nil {
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

// CrashPoints lists the places in this package and below where a test may kill
// the process: between every two steps whose order matters.
func CrashPoints() []string {
	return []string{
		"payload.kept",  // bytes kept, Accepted not yet appended
		"append.before", // decided, not yet appended
		"append.after",  // appended, nobody told yet
		"send.before",   // about to hand the bytes to nodes
		"send.after",    // handed over, what came of it not yet recorded
		"queue.applied", // the due queue has folded events
		"verdict",       // the watcher is about to announce or seal
	}
}

package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Append adds events to a stream; see commands.Store for its contract.
func (s *Store) Append(ctx context.Context, stream event.Stream, expected event.Version, events ...event.Event) (a event.Appended, err error) {
	if err := check(stream, events); err != nil {
		return a, err
	}
	var conflict *event.ConflictError
	err = s.enter(ctx, func() { a, conflict = s.append(stream, expected, events) })
	switch {
	case err != nil:
		return event.Appended{}, fmt.Errorf("append to %s: %w", stream, err)
	case conflict != nil:
		return event.Appended{}, conflict
	}
	return a, nil
}

func check(stream event.Stream, events []event.Event) error {
	switch {
	case stream == "" || len(events) == 0:
		return fmt.Errorf("append of %d events to stream %q", len(events), stream)
	case len(stream) > event.MaxStreamBytes:
		return fmt.Errorf("%w: a stream name of %d bytes", event.ErrTooLarge, len(stream))
	case len(events) > event.MaxAppend:
		return fmt.Errorf("%w: %d events for %s", event.ErrTooLarge, len(events), stream)
	}
	for _, e := range events {
		if len(e.Data) > event.MaxEventBytes {
			return fmt.Errorf("%w: %s of %d bytes for %s", event.ErrTooLarge, e.Name, len(e.Data), stream)
		}
	}
	return nil
}

func (d *data) append(stream event.Stream, expected event.Version, events []event.Event) (event.Appended, *event.ConflictError) {
	at := event.Version(len(d.streams[stream]))
	if at != expected {
		if a, ok := d.repeated(stream, expected, events); ok {
			return a, nil
		}
		return event.Appended{}, &event.ConflictError{Stream: stream, Expected: expected, Actual: at}
	}
	now := micro(d.now())
	for _, e := range events {
		at++
		e.Data = slices.Clone(e.Data)
		d.add(event.Recorded{Event: e, Stream: stream, Version: at, Position: d.head() + 1, At: now})
	}
	return event.Appended{Version: at, Position: d.head()}, nil
}

// Commit adds events of another log with their versions, positions and times. A store used in
// this way accepts no appends.
func (s *Store) Commit(events ...event.Recorded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.add(e)
	}
}

func (d *data) add(e event.Recorded) {
	d.streams[e.Stream] = append(d.streams[e.Stream], len(d.events))
	d.events = append(d.events, e)
	if d.grown != nil {
		close(d.grown)
		d.grown = nil
	}
}

// head returns the position of the last event.
func (d *data) head() event.Position {
	if len(d.events) == 0 {
		return 0
	}
	return d.events[len(d.events)-1].Position
}

// repeated reports whether exactly these events follow the expected version.
func (d *data) repeated(stream event.Stream, expected event.Version, events []event.Event) (event.Appended, bool) {
	places := d.streams[stream]
	if expected > event.Version(len(places)) || len(places[expected:]) < len(events) {
		return event.Appended{}, false
	}
	for i, e := range events {
		if d.events[places[int(expected)+i]].ID != e.ID {
			return event.Appended{}, false
		}
	}
	last := expected + event.Version(len(events))
	return event.Appended{Version: last, Position: d.events[places[last-1]].Position, Repeated: true}, true
}

// Version returns the version of a stream's last event; 0 when there is no stream.
func (s *Store) Version(ctx context.Context, stream event.Stream) (version event.Version, err error) {
	err = s.enter(ctx, func() { version = event.Version(len(s.streams[stream])) })
	return version, err
}

// ReadStream yields a stream's events after a version.
func (s *Store) ReadStream(ctx context.Context, stream event.Stream, after event.Version) iter.Seq2[event.Recorded, error] {
	return func(yield func(event.Recorded, error) bool) {
		for {
			var found *event.Recorded
			err := s.enter(ctx, func() {
				if places := s.streams[stream]; after < event.Version(len(places)) {
					found = &s.events[places[after]]
				}
			})
			if err != nil {
				yield(event.Recorded{}, fmt.Errorf("read %s: %w", stream, err))
				return
			}
			if found == nil || !yield(*found, nil) {
				return
			}
			after++
		}
	}
}

// ReadAll yields batches up to the head of the log.
func (s *Store) ReadAll(ctx context.Context, after event.Position, f event.Filter, most int) iter.Seq2[event.Batch, error] {
	return event.Pages(after, func(after event.Position) (event.Batch, error) {
		b, _, err := s.Page(ctx, after, f, most)
		return b, err
	})
}

const pageMax = 1000 // events in one batch

// Page is one batch of ReadAll. If the batch is live, grown is closed when there are more
// events.
func (s *Store) Page(ctx context.Context, after event.Position, f event.Filter, most int) (b event.Batch, grown <-chan struct{}, err error) {
	if most < 1 {
		return b, nil, fmt.Errorf("read of at most %d events", most)
	}
	b = event.Batch{Next: after}
	beyond := false
	err = s.enter(ctx, func() {
		head := s.head()
		if beyond = after > head; beyond {
			return
		}
		first := sort.Search(len(s.events), func(i int) bool { return s.events[i].Position > after })
		for _, e := range s.events[first:] {
			if len(b.Events) == min(most, pageMax) {
				break
			}
			b.Next = e.Position
			if f.Passes(e.Stream, e.Name) {
				b.Events = append(b.Events, e)
			}
		}
		if b.Live = b.Next == head; b.Live {
			if s.grown == nil {
				s.grown = make(chan struct{})
			}
			grown = s.grown
		}
	})
	if err == nil && beyond {
		err = fmt.Errorf("the log ends before position %d", after)
	}
	if err != nil {
		return event.Batch{}, nil, fmt.Errorf("read after position %d: %w", after, err)
	}
	return b, grown, nil
}

// Subscribe yields batches for ever.
func (s *Store) Subscribe(ctx context.Context, after event.Position, f event.Filter, most int) iter.Seq2[event.Batch, error] {
	return func(yield func(event.Batch, error) bool) {
		for {
			b, grown, err := s.Page(ctx, after, f, most)
			if err != nil {
				yield(event.Batch{}, err)
				return
			}
			if !yield(b, nil) {
				return
			}
			after = b.Next
			if !b.Live {
				continue
			}
			select {
			case <-grown:
			case <-s.closing:
				yield(event.Batch{}, event.ErrClosed)
				return
			case <-ctx.Done():
				yield(event.Batch{}, ctx.Err())
				return
			}
		}
	}
}

// Head is the position of the last event.
func (s *Store) Head(ctx context.Context) (head event.Position, err error) {
	err = s.enter(ctx, func() { head = s.head() })
	return head, err
}

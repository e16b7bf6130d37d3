package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Append adds events to a stream; see commands.Store for its contract.
func (s *Store) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (a eventlog.Appended, err error) {
	if err := check(stream, events); err != nil {
		return a, err
	}
	var conflict *eventlog.ConflictError
	err = s.enter(ctx, func() { a, conflict = s.append(stream, expected, events) })
	switch {
	case err != nil:
		return eventlog.Appended{}, fmt.Errorf("append to %s: %w", stream, err)
	case conflict != nil:
		return eventlog.Appended{}, conflict
	}
	return a, nil
}

func check(stream eventlog.Stream, events []eventlog.Event) error {
	switch {
	case stream == "" || len(events) == 0:
		return fmt.Errorf("append of %d events to stream %q", len(events), stream)
	case len(stream) > eventlog.MaxStreamBytes:
		return fmt.Errorf("%w: a stream name of %d bytes", eventlog.ErrTooLarge, len(stream))
	case len(events) > eventlog.MaxAppend:
		return fmt.Errorf("%w: %d events for %s", eventlog.ErrTooLarge, len(events), stream)
	}
	for _, e := range events {
		if len(e.Data) > eventlog.MaxEventBytes {
			return fmt.Errorf("%w: %s of %d bytes for %s", eventlog.ErrTooLarge, e.Name, len(e.Data), stream)
		}
	}
	return nil
}

func (d *data) append(stream eventlog.Stream, expected eventlog.Version, events []eventlog.Event) (eventlog.Appended, *eventlog.ConflictError) {
	at := eventlog.Version(len(d.streams[stream]))
	if at != expected {
		if a, ok := d.repeated(stream, expected, events); ok {
			return a, nil
		}
		return eventlog.Appended{}, &eventlog.ConflictError{Stream: stream, Expected: expected, Actual: at}
	}
	now := micro(d.now())
	for _, e := range events {
		at++
		e.Data = slices.Clone(e.Data)
		d.add(eventlog.Recorded{Event: e, Stream: stream, Version: at, Position: d.head() + 1, At: now})
	}
	return eventlog.Appended{Version: at, Position: d.head()}, nil
}

// Commit adds events of another log with their versions, positions and times. A store used in
// this way accepts no appends.
func (s *Store) Commit(events ...eventlog.Recorded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.add(e)
	}
}

func (d *data) add(e eventlog.Recorded) {
	d.streams[e.Stream] = append(d.streams[e.Stream], len(d.events))
	d.events = append(d.events, e)
	if d.grown != nil {
		close(d.grown)
		d.grown = nil
	}
}

// head returns the position of the last event.
func (d *data) head() eventlog.Position {
	if len(d.events) == 0 {
		return 0
	}
	return d.events[len(d.events)-1].Position
}

// repeated reports whether exactly these events follow the expected version.
func (d *data) repeated(stream eventlog.Stream, expected eventlog.Version, events []eventlog.Event) (eventlog.Appended, bool) {
	places := d.streams[stream]
	if expected > eventlog.Version(len(places)) || len(places[expected:]) < len(events) {
		return eventlog.Appended{}, false
	}
	for i, e := range events {
		if d.events[places[int(expected)+i]].ID != e.ID {
			return eventlog.Appended{}, false
		}
	}
	last := expected + eventlog.Version(len(events))
	return eventlog.Appended{Version: last, Position: d.events[places[last-1]].Position, Repeated: true}, true
}

// Version returns the version of a stream's last event; 0 when there is no stream.
func (s *Store) Version(ctx context.Context, stream eventlog.Stream) (version eventlog.Version, err error) {
	err = s.enter(ctx, func() { version = eventlog.Version(len(s.streams[stream])) })
	return version, err
}

// ReadStream yields a stream's events after a version.
func (s *Store) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for {
			var found *eventlog.Recorded
			err := s.enter(ctx, func() {
				if places := s.streams[stream]; after < eventlog.Version(len(places)) {
					found = &s.events[places[after]]
				}
			})
			if err != nil {
				yield(eventlog.Recorded{}, fmt.Errorf("read %s: %w", stream, err))
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
func (s *Store) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return eventlog.Pages(after, func(after eventlog.Position) (eventlog.Batch, error) {
		b, _, err := s.Page(ctx, after, f, most)
		return b, err
	})
}

const pageMax = 1000 // events in one batch

// Page is one batch of ReadAll. If the batch is live, grown is closed when there are more
// events.
func (s *Store) Page(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) (b eventlog.Batch, grown <-chan struct{}, err error) {
	if most < 1 {
		return b, nil, fmt.Errorf("read of at most %d events", most)
	}
	b = eventlog.Batch{Next: after}
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
		return eventlog.Batch{}, nil, fmt.Errorf("read after position %d: %w", after, err)
	}
	return b, grown, nil
}

// Subscribe yields batches for ever.
func (s *Store) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for {
			b, grown, err := s.Page(ctx, after, f, most)
			if err != nil {
				yield(eventlog.Batch{}, err)
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
				yield(eventlog.Batch{}, eventlog.ErrClosed)
				return
			case <-ctx.Done():
				yield(eventlog.Batch{}, ctx.Err())
				return
			}
		}
	}
}

// Head is the position of the last event.
func (s *Store) Head(ctx context.Context) (head eventlog.Position, err error) {
	err = s.enter(ctx, func() { head = s.head() })
	return head, err
}

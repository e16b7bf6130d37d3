package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Readable is a log that may have dropped its beginning. For events that it does not hold it
// returns *archive.GoneError, and never an empty result.
type Readable interface {
	ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error]
	ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	Head(ctx context.Context) (eventlog.Position, error)
	// Segments lists the segments of the log's dropped part, in order.
	Segments(ctx context.Context) ([]archive.Segment, error)
}

// Live is a store that may have dropped the beginning of its log.
type Live interface {
	Readable
	Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error)
	// Version also counts the events that were dropped.
	Version(ctx context.Context, stream eventlog.Stream) (eventlog.Version, error)
}

// Log is a reader of the whole log: of the files, and of the rest in the store.
type Log struct {
	Readable
	files *Files

	mu       sync.Mutex
	segments []archive.Segment
}

// NewLog combines files and a log.
func NewLog(rest Readable, files *Files) *Log { return &Log{Readable: rest, files: files} }

// Store is the whole log, with appends.
type Store struct {
	*Log
	live Live
}

// NewStore combines files and a store.
func NewStore(live Live, files *Files) *Store { return &Store{NewLog(live, files), live} }

// covering lists segments that hold all events below a position. It asks the store if the
// cached list does not reach that far.
func (l *Log) covering(ctx context.Context, below eventlog.Position) ([]archive.Segment, error) {
	l.mu.Lock()
	known := l.segments
	l.mu.Unlock()
	if len(known) == 0 || known[len(known)-1].Past < below {
		listed, err := l.Segments(ctx)
		if err != nil {
			return nil, err
		}
		known = listed
		l.mu.Lock()
		l.segments = listed
		l.mu.Unlock()
	}
	next := eventlog.Position(1)
	for i, segment := range known {
		if next >= below {
			return known[:i], nil
		}
		if segment.First != next {
			break
		}
		next = segment.Past
	}
	if next < below {
		return nil, fmt.Errorf("archive: %w: the list has no segment that begins with position %d", archive.ErrMissing, next)
	}
	return known, nil
}

// ReadAll yields batches after a position up to the head of the log.
func (l *Log) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return l.whole(ctx, after, f, most, l.Readable.ReadAll)
}

// Subscribe is ReadAll without an end.
func (l *Log) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return l.whole(ctx, after, f, most, l.Readable.Subscribe)
}

type reading func(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error]

// whole reads from the store. While the store has dropped the next event, it reads from the
// files.
func (l *Log) whole(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int, live reading) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for {
			var gone *archive.GoneError
			for b, err := range live(ctx, after, f, most) {
				if errors.As(err, &gone) {
					break
				}
				if !yield(b, err) || err != nil {
					return
				}
				after = b.Next
			}
			if gone == nil {
				return
			}
			var more bool
			if after, more = l.filed(ctx, after, gone.Begins, f, max(most, 1), yield); !more {
				return
			}
		}
	}
}

// filed yields the files' events after one position and below another.
func (l *Log) filed(ctx context.Context, after, below eventlog.Position, f eventlog.Filter, most int, yield func(eventlog.Batch, error) bool) (eventlog.Position, bool) {
	segments, err := l.covering(ctx, below)
	if err != nil {
		yield(eventlog.Batch{}, err)
		return after, false
	}
	for _, segment := range segments {
		if segment.Past <= after+1 {
			continue
		}
		for events, err := range l.files.Read(ctx, segment, after) {
			if err != nil {
				yield(eventlog.Batch{}, err)
				return after, false
			}
			for len(events) > 0 && after+1 < below {
				var b eventlog.Batch
				b, events = batch(events, below, f, most)
				if after = b.Next; !yield(b, nil) {
					return after, false
				}
			}
		}
	}
	return max(after, below-1), true
}

// batch takes up to most passing events from the front, below a position.
func batch(events []eventlog.Recorded, below eventlog.Position, f eventlog.Filter, most int) (b eventlog.Batch, rest []eventlog.Recorded) {
	for i, r := range events {
		if r.Position >= below {
			return b, nil
		}
		if len(b.Events) == most {
			return b, events[i:]
		}
		b.Next = r.Position
		if f.Passes(r.Stream, r.Name) {
			b.Events = append(b.Events, r)
		}
	}
	return b, nil
}

// ReadStream yields a stream's events after a version.
func (l *Log) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for {
			var gone *archive.GoneError
			for r, err := range l.Readable.ReadStream(ctx, stream, after) {
				if errors.As(err, &gone) {
					break
				}
				if !yield(r, err) || err != nil {
					return
				}
				after = r.Version
			}
			if gone == nil {
				return
			}
			var more bool
			if after, more = l.filedStream(ctx, stream, after, gone, yield); !more {
				return
			}
		}
	}
}

// filedStream yields the files' events of a stream after a version. The caller knows that there
// are some.
func (l *Log) filedStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version, gone *archive.GoneError, yield func(eventlog.Recorded, error) bool) (eventlog.Version, bool) {
	segments, err := l.covering(ctx, gone.Begins)
	if err != nil {
		yield(eventlog.Recorded{}, err)
		return after, false
	}
	begun := after
	for _, segment := range segments {
		if !gone.Extent.Meets(segment) {
			continue
		}
		events, err := l.files.Stream(ctx, segment, stream, after)
		for _, r := range events {
			if r.Version != after+1 {
				break
			}
			if !yield(r, nil) {
				return after, false
			}
			after = r.Version
		}
		if err != nil {
			yield(eventlog.Recorded{}, err)
			return after, false
		}
	}
	if after == begun {
		yield(eventlog.Recorded{}, fmt.Errorf("archive: %s: %w: its event %d is neither in the store nor in a segment", stream, archive.ErrMissing, after+1))
		return after, false
	}
	return after, true
}

// Version returns the version of the stream's last event; 0 when there is no stream.
func (s *Store) Version(ctx context.Context, stream eventlog.Stream) (eventlog.Version, error) {
	return s.live.Version(ctx, stream)
}

// Append appends to the store. On a conflict it checks for a repeated append whose events are
// in the files, which the store cannot see.
func (s *Store) Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	appended, err := s.live.Append(ctx, stream, expected, events...)
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) || conflict.Actual < expected || conflict.Actual-expected < eventlog.Version(len(events)) {
		return appended, err
	}
	if !s.gone(ctx, stream, expected) {
		return appended, err // the store holds all these events, and has compared them
	}
	same := 0
	for r, readErr := range s.ReadStream(ctx, stream, expected) {
		if readErr != nil {
			return eventlog.Appended{}, readErr
		}
		if r.ID != events[same].ID {
			return appended, err
		}
		if same++; same == len(events) {
			return eventlog.Appended{Version: r.Version, Position: r.Position, Repeated: true}, nil
		}
	}
	return appended, err
}

// gone reports whether the store has dropped the stream's next event after a version.
func (s *Store) gone(ctx context.Context, stream eventlog.Stream, after eventlog.Version) bool {
	for _, err := range s.live.ReadStream(ctx, stream, after) {
		var gone *archive.GoneError
		return errors.As(err, &gone)
	}
	return false
}

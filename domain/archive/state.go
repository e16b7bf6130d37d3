package archive

import (
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Stream is the name of the archive's event stream.
const Stream eventlog.Stream = "archive"

// Event is a fact about the archive.
//
//sumtype:decl
type Event interface{ fact() }

// Stored: a segment was written, read back and verified.
type Stored struct {
	Segment
	At time.Time `json:"at"`
}

// Dropped: the store no longer has the events below a position, except those copied forward.
type Dropped struct {
	Below eventlog.Position `json:"below"`
	At    time.Time         `json:"at"`
}

// Restored: the store has the events from a position on again.
type Restored struct {
	From eventlog.Position `json:"from"`
	At   time.Time         `json:"at"`
}

func (Stored) fact()   {}
func (Dropped) fact()  {}
func (Restored) fact() {}

// Codec maps event types to stored names, which never change.
func Codec() eventlog.Codec[Event] {
	return eventlog.NewCodec(
		eventlog.As[Event, Stored]("archive.stored.v1"),
		eventlog.As[Event, Dropped]("archive.dropped.v1"),
		eventlog.As[Event, Restored]("archive.restored.v1"),
	)
}

// Command is an observation about the archive.
//
//sumtype:decl
type Command interface{ wish() }

// Store records that a segment was written and verified.
type Store struct {
	Segment Segment
	At      time.Time
}

// Drop records that the events below a position are only in the archive.
type Drop struct {
	Below eventlog.Position
	At    time.Time
}

// Restore records that the events from a position on are in the store again.
type Restore struct {
	From eventlog.Position
	At   time.Time
}

func (Store) wish()   {}
func (Drop) wish()    {}
func (Restore) wish() {}

const (
	ErrGap     = eventlog.Refusal("archive-gap")      // the segment does not follow the last one
	ErrForeign = eventlog.Refusal("archive-foreign")  // a segment of another store
	ErrNotKept = eventlog.Refusal("archive-not-kept") // to be dropped, but not in a segment
)

// State is the result of the archive's events. The zero State is an empty archive.
type State struct {
	Segments []Segment
	Begins   eventlog.Position // the store has dropped all events below; 0: none
	// Held means that events were restored since the last drop, and must stay in the store.
	Held bool
}

// Past returns the first position after all segments.
func (s State) Past() eventlog.Position {
	if len(s.Segments) == 0 {
		return 1
	}
	return s.Segments[len(s.Segments)-1].Past
}

// Decide returns the events that a command adds.
func (s State) Decide(c Command) ([]Event, error) {
	switch c := c.(type) {
	case Store:
		return s.store(c)
	case Drop:
		switch {
		case c.Below > s.Past():
			return nil, ErrNotKept.Because("segments end below %d, and %d was dropped", s.Past(), c.Below)
		case c.Below <= s.Begins && !s.Held:
			return nil, nil
		}
		return []Event{Dropped(c)}, nil
	case Restore:
		if c.From >= s.Begins {
			return nil, nil
		}
		return []Event{Restored(c)}, nil
	}
	panic(fmt.Sprintf("archive: unknown command %T", c))
}

func (s State) store(c Store) ([]Event, error) {
	for _, known := range s.Segments {
		if known.First == c.Segment.First && known.Past == c.Segment.Past && known.Hash == c.Segment.Hash {
			return nil, nil
		}
	}
	switch {
	case c.Segment.First != s.Past() || c.Segment.Past <= c.Segment.First:
		return nil, ErrGap.Because("segment %s does not begin at %d, where the last one ends", c.Segment.Name, s.Past())
	case len(s.Segments) > 0 && s.Segments[0].Store != c.Segment.Store:
		return nil, ErrForeign.Because("segment %s is of the store %s, this is %s", c.Segment.Name, c.Segment.Store, s.Segments[0].Store)
	}
	return []Event{Stored{c.Segment, c.At}}, nil
}

// Evolve applies one event.
func (s State) Evolve(e Event) State {
	switch e := e.(type) {
	case Stored:
		s.Segments = append(s.Segments[:len(s.Segments):len(s.Segments)], e.Segment)
	case Dropped:
		s.Begins, s.Held = e.Below, false
	case Restored:
		s.Begins, s.Held = e.From, true
	default:
		panic(fmt.Sprintf("archive: unknown event %T", e))
	}
	return s
}

// Package archive is the part of the log that has left the store for files.
//
//	Stored, Stored, … → Dropped (what those hold) → Stored, … → Restored (some of it)
//
// Invariants of a [State], which every sequence of commands keeps:
//
//  1. Segments are of one store and follow each other without a gap, from position 1 on.
//  2. Nothing is dropped that is not in a segment.
//  3. Deciding the same command twice adds nothing the second time.
package archive

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// What may be wrong with a segment. The errors that wrap them name it.
var (
	ErrMissing = errors.New("is missing")
	ErrDamaged = errors.New("is damaged")
)

// DamagedError says that a stretch of a segment is not what was stored. It is an
// [ErrDamaged], and names the segment.
type DamagedError struct {
	Segment     string         // its name
	First, Last event.Position // whose events are concerned
	What        string
	// Remains are the events that can still be made out, from First on. None of them is to
	// be trusted; they tell where the damage begins.
	Remains []event.Recorded
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("archive segment %s: %v: positions %d to %d: %s", e.Segment, ErrDamaged, e.First, e.Last, e.What)
}

func (e *DamagedError) Unwrap() error { return ErrDamaged }

// Digest is a SHA-256.
type Digest [32]byte

func (d Digest) String() string               { return hex.EncodeToString(d[:]) }
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("%q is not a SHA-256", text)
	}
	if _, err := hex.Decode(d[:], text); err != nil {
		return fmt.Errorf("%q is not a SHA-256", text)
	}
	return nil
}

// Segment is a file with all events of a range of positions.
type Segment struct {
	Store  event.ID       `json:"store"` // the id of the store's first event
	First  event.Position `json:"first"`
	Past   event.Position `json:"past"` // the first position beyond the range
	Name   string         `json:"name"`
	Hash   Digest         `json:"hash"` // what the file's footer says
	Events uint64         `json:"events"`
	Bytes  uint64         `json:"bytes"` // of the file
	From   time.Time      `json:"from"`  // when its first event was recorded
	To     time.Time      `json:"to"`    // and its last
}

// Name is that of the segment of a range.
func Name(first, past event.Position) string {
	return fmt.Sprintf("%020d-%020d.segment", first, past)
}

// Extent is where events of a stream lie: from one position to another, both in it. Zero
// is not known.
type Extent struct{ First, Last event.Position }

// Meets reports whether a segment may hold some of them.
func (e Extent) Meets(s Segment) bool {
	return s.Past > e.First && (e.Last == 0 || s.First <= e.Last)
}

// GoneError says that a store does not hold what it was asked for any more: what lies
// before Begins has to be read from the archive.
type GoneError struct {
	Begins event.Position // from here on the store's log is whole
	// Stream is set when one was asked for: its events after a version are not all
	// there, and those that are not lie in this extent.
	Stream event.Stream
	Extent Extent
}

func (e *GoneError) Error() string {
	what := "the log"
	if e.Stream != "" {
		what = string(e.Stream)
	}
	return fmt.Sprintf("%s: positions below %d are in the archive: say where that is (setting archive)", what, e.Begins)
}

// Rule says which streams are settled: nobody is expected to read or to add to them
// soon. It decides how fast they can be read, never whether.
type Rule []Ending

// Ending is how streams with a prefix end: by any of these events, or by having got
// none for long.
type Ending struct {
	Prefix string
	Names  []string // of the last event; none: any
}

// Settled reports whether a stream is whose last event has a name.
func (r Rule) Settled(stream event.Stream, last string) bool {
	for _, e := range r {
		if !strings.HasPrefix(string(stream), e.Prefix) {
			continue
		}
		if len(e.Names) == 0 {
			return true
		}
		for _, name := range e.Names {
			if strings.HasPrefix(last, name) {
				return true
			}
		}
	}
	return false
}

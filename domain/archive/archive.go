// Package archive manages the part of the log that was moved from the store to files.
//
//	Stored, Stored, … → Dropped (the stored events) → Stored, … → Restored (some of them)
//
// Invariants of a [State] under every sequence of commands:
//
//  1. Segments are of one store and follow each other without a gap, from position 1 on.
//  2. Nothing is dropped that is not in a segment.
//  3. Deciding the same command twice adds no event the second time.
package archive

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Errors of a segment. The errors that wrap them contain its name.
var (
	ErrMissing = errors.New("is missing")
	ErrDamaged = errors.New("is damaged")
)

// DamagedError reports that a part of a segment differs from the stored one. It wraps
// [ErrDamaged].
type DamagedError struct {
	Segment     string            // name of the segment
	First, Last eventlog.Position // positions of the affected events
	What        string
	// Remains are the events still readable, from First on. None of them is reliable; they show
	// where the damage begins.
	Remains []eventlog.Recorded
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("archive segment %s: %v: positions %d to %d: %s", e.Segment, ErrDamaged, e.First, e.Last, e.What)
}

func (e *DamagedError) Unwrap() error { return ErrDamaged }

// Digest is a SHA-256 digest.
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
	Store  eventlog.ID       `json:"store"` // id of the store's first event
	First  eventlog.Position `json:"first"`
	Past   eventlog.Position `json:"past"` // the first position after the range
	Name   string            `json:"name"`
	Hash   Digest            `json:"hash"` // digest in the file's footer
	Events uint64            `json:"events"`
	Bytes  uint64            `json:"bytes"` // of the file
	From   time.Time         `json:"from"`  // time of its first event
	To     time.Time         `json:"to"`    // time of its last event
}

// Name returns the file name of the segment for a range.
func Name(first, past eventlog.Position) string {
	return fmt.Sprintf("%020d-%020d.segment", first, past)
}

// Extent is the inclusive range of positions of a stream's events. Zero: unknown.
type Extent struct{ First, Last eventlog.Position }

// Meets reports whether a segment may contain some of them.
func (e Extent) Meets(s Segment) bool {
	return s.Past > e.First && (e.Last == 0 || s.First <= e.Last)
}

// GoneError reports that the store no longer has the requested events. Events before Begins must
// be read from the archive.
type GoneError struct {
	Begins eventlog.Position // the store's log is complete from here on
	// Stream is set if a stream was requested: some of its events are missing, and those events
	// are in Extent.
	Stream eventlog.Stream
	Extent Extent
}

func (e *GoneError) Error() string {
	what := "the log"
	if e.Stream != "" {
		what = string(e.Stream)
	}
	return fmt.Sprintf("%s: positions below %d are in the archive: configure its place (setting archive)", what, e.Begins)
}

// Rule decides which streams are settled: not expected to be read or extended soon. It affects
// only how fast they can be read.
type Rule []Ending

// Ending is the condition that settles streams with a prefix: their last event has one of the
// names. If Names is empty, a stream is settled once it has had no event for long.
type Ending struct {
	Prefix string
	Names  []string // prefixes of the last event's name; empty: any
}

// Settled reports whether a stream with this last event is settled.
func (r Rule) Settled(stream eventlog.Stream, last string) bool {
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

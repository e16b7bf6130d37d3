package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Fault is an event that fails the check.
type Fault struct {
	Position eventlog.Position `json:"position"`
	Stream   eventlog.Stream   `json:"stream,omitempty"`
	Version  eventlog.Version  `json:"version,omitempty"`
	What     string            `json:"what"`
}

// String describes the event and its fault.
func (f Fault) String() string {
	if f.Version == 0 {
		return fmt.Sprintf("position %d: %s", f.Position, f.What)
	}
	return fmt.Sprintf("position %d, %s version %d: %s", f.Position, f.Stream, f.Version, f.What)
}

func faultOf(r eventlog.Recorded, format string, args ...any) Fault {
	return Fault{r.Position, r.Stream, r.Version, fmt.Sprintf(format, args...)}
}

// Check verifies a log against its links and seals. Feed it the events in order of position. It
// needs about a hundred bytes per stream.
type Check struct {
	seals   func() (Sealed, bool)
	next    Sealed // the seal after the current one; none if Through is 0
	streams map[[16]byte]end
	last    eventlog.Position
	hash    Digest
	count   uint64

	witness Sealed  // the current seal; none if Through is 0
	passed  []place // events since the current seal's Since
	sealed  eventlog.Position
	kept    []Sealed // outside seals whose Through is not reached yet

	// Unlinked counts the events from before links existed.
	Unlinked uint64
}

// end is the latest state of a stream.
type end struct {
	version eventlog.Version
	link    eventlog.Link
	tight   bool // its last event had a link
}

// place is an event with its leaf.
type place struct {
	at   Fault
	leaf Digest
}

// NewCheck returns a check of a log from its first event on. seals returns the log's seals in
// order; their signatures must be valid. The log is also checked against the seals in kept, which
// were stored outside: only they reveal a truncated log.
func NewCheck(seals func() (Sealed, bool), kept ...Sealed) *Check {
	kept = slices.Clone(kept)
	slices.SortFunc(kept, func(a, b Sealed) int { return cmp.Compare(a.Through, b.Through) })
	return &Check{seals: seals, streams: map[[16]byte]end{}, kept: kept}
}

// Count returns the number of checked events. Sealed returns the position up to which seals cover
// them.
func (c *Check) Count() uint64             { return c.count }
func (c *Check) Sealed() eventlog.Position { return c.sealed }

// advance verifies the seals that end before a position, and starts the seal that covers the
// position.
func (c *Check) advance(to eventlog.Position) (found []Fault) {
	for {
		if c.witness.Through != 0 {
			if c.witness.Through >= to {
				return found
			}
			found = append(found, c.compare()...)
		}
		if c.next.Through == 0 {
			if c.next, _ = c.seals(); c.next.Through == 0 {
				return found
			}
		}
		if c.next.Since >= to {
			return found
		}
		c.witness, c.next, c.passed = c.next, Sealed{}, c.passed[:0]
	}
}

// Event checks the next event and returns its faults.
func (c *Check) Event(r eventlog.Recorded) (found []Fault) {
	found = c.advance(r.Position)
	for len(c.kept) > 0 && c.kept[0].Through < r.Position {
		found = append(found, Fault{Position: c.kept[0].Through, What: "no event is here, but a kept seal covers one"})
		c.kept = c.kept[1:]
	}
	if r.Position <= c.last {
		found = append(found, faultOf(r, "follows position %d", c.last))
	}
	c.last = max(c.last, r.Position)
	found = append(found, c.stream(r)...)
	leaf := Leaf(r)
	c.hash, c.count = c.hash.Next(leaf), c.count+1
	if c.witness.Through != 0 {
		c.passed = append(c.passed, place{faultOf(r, ""), leaf})
	}
	for len(c.kept) > 0 && c.kept[0].Through == r.Position {
		if k := c.kept[0]; k.Hash != c.hash || k.Count != c.count {
			found = append(found, faultOf(r, "the log up to here differs from a kept seal"))
		}
		c.kept = c.kept[1:]
	}
	if c.witness.Through == r.Position {
		found = append(found, c.compare()...)
	}
	return found
}

// End returns the faults that show at the end of the log.
func (c *Check) End() (found []Fault) {
	if c.witness.Through != 0 {
		found = c.compare()
	}
	for _, k := range c.kept {
		found = append(found, Fault{Position: k.Through, What: fmt.Sprintf("the log ends at position %d, but a kept seal covers it up to here: its end was cut off", c.last)})
	}
	c.kept = nil
	return found
}

// Follows reports whether an event, not fed to the check, has the next version of its stream.
func (c *Check) Follows(r eventlog.Recorded) bool {
	return r.Version == c.streams[keyOf(r.Stream)].version+1
}

func keyOf(stream eventlog.Stream) [16]byte {
	sum := sha256.Sum256([]byte(stream))
	return [16]byte(sum[:16])
}

// stream checks version and link.
func (c *Check) stream(r eventlog.Recorded) (found []Fault) {
	if r.Stream == "" {
		return []Fault{faultOf(r, "%s has no stream", r.Name)}
	}
	key := keyOf(r.Stream)
	last := c.streams[key]
	linked := !r.Meta.Link.IsZero()
	switch {
	case r.Version != last.version+1:
		found = append(found, faultOf(r, "version %d follows version %d", r.Version, last.version))
	case linked && r.Meta.Link != last.link.Next(r.Stream, r.Version, r.Event):
		found = append(found, faultOf(r, "%s does not match its link: it or the event before it in its stream was altered", r.Name))
	case !linked && last.tight:
		found = append(found, faultOf(r, "%s has lost its link", r.Name))
	}
	if !linked {
		c.Unlinked++
	}
	c.streams[key] = end{r.Version, r.Linked(), linked || last.tight}
	return found
}

// compare checks the events since a seal's Since against the seal. It continues from the seal's
// values, so that one fault is reported once.
func (c *Check) compare() (found []Fault) {
	w := c.witness
	if c.hash != w.Hash || c.count != w.Count {
		found = []Fault{c.differs(w)}
	} else {
		c.sealed = w.Through
	}
	c.hash, c.count = w.Hash, w.Count
	c.witness, c.passed = Sealed{}, c.passed[:0]
	return found
}

// differs returns the first event that is unknown to a seal, or missing.
func (c *Check) differs(w Sealed) Fault {
	marks := slices.Collect(slices.Chunk(w.Marks, MarkBytes))
	same := func(i, j int) bool {
		return i < len(marks) && j < len(c.passed) && bytes.Equal(marks[i], c.passed[j].leaf[:MarkBytes])
	}
	i := 0
	for same(i, i) {
		i++
	}
	by := fmt.Sprintf("the seal up to position %d", w.Through)
	missing := max(0, len(marks)-len(c.passed))
	switch {
	case len(w.Marks) == 0 || i == len(marks) && i == len(c.passed):
		return Fault{Position: w.Through, What: "the events up to here differ from " + by}
	case i == len(c.passed):
		before := w.Since
		if i > 0 {
			before = c.passed[i-1].at.Position
		}
		return Fault{Position: before + 1, What: fmt.Sprintf("%d events are missing that %s covers", missing, by)}
	case i == len(marks) || len(c.passed) > len(marks) && (i+1 == len(c.passed) || same(i, i+1)):
		return c.passed[i].named("is not among the events that %s covers: it was inserted", by)
	case missing > 0 && same(i+missing, i):
		return c.passed[i].named("before this event %d events are missing that %s covers", missing, by)
	}
	return c.passed[i].named("differs from %s: content, order or time was altered", by)
}

func (p place) named(format string, args ...any) Fault {
	p.at.What = fmt.Sprintf(format, args...)
	return p.at
}

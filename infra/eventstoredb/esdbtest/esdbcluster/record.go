package esdbcluster

import (
	"slices"
	"time"
)

// Record is an event in the log. It is not changed once it is there.
type Record struct {
	Stream   string
	Revision uint64
	Position uint64 // both its commit and its prepare position
	ID       [16]byte
	Kind     string // event type
	Content  string // content type
	Created  int64  // ticks of 100 ns since 1970
	Data     []byte
	Meta     []byte
}

// Proposal is an event to be appended.
type Proposal struct {
	ID            [16]byte
	Kind, Content string
	Data, Meta    []byte
}

// Expectation is the state that an append expects of its stream.
type Expectation struct {
	Kind     Expected
	Revision uint64 // of the stream's last event; for ExpectRevision alone
}

// Expected is a kind of expectation.
type Expected int

// The kinds of expectation that the protocol has.
const (
	ExpectRevision Expected = iota
	ExpectNoStream
	ExpectAny
	ExpectStream // the stream exists
)

// place returns the index in the stream at which the events of an append belong, or -1
// if the stream cannot be as expected.
func (e Expectation) place(stream []*Record) int {
	switch {
	case e.Kind == ExpectNoStream:
		return 0
	case e.Kind == ExpectRevision && e.Revision < uint64(len(stream)):
		return int(e.Revision) + 1
	case e.Kind == ExpectRevision, e.Kind == ExpectStream && len(stream) == 0:
		return -1
	}
	return len(stream)
}

// recordBytes is about the size of a record in a real log without its texts. It makes
// gaps between positions, and no number inside a gap is a position.
const recordBytes = 96

// end returns the position after the record.
func (r *Record) end() uint64 {
	return r.Position + recordBytes + uint64(len(r.Stream)+2*len(r.Kind)+len(r.Data)+len(r.Meta))
}

// records makes records of events for one stream, from a revision and a position on.
func records(now time.Time, stream string, revision, position uint64, events []Proposal) []*Record {
	made := make([]*Record, 0, len(events))
	for i, e := range events {
		r := &Record{
			Stream: stream, Revision: revision + uint64(i), Position: position, ID: e.ID, Kind: e.Kind, Content: e.Content,
			Created: now.UnixNano() / 100, Data: e.Data, Meta: e.Meta,
		}
		made, position = append(made, r), r.end()
	}
	return made
}

// FirstWrite returns the events that a new server writes into streams of its own.
func FirstWrite(now time.Time) (all []*Record) {
	position := uint64(0)
	for _, stream := range []string{"$settings", "$users", "$scavenges"} {
		all = append(all, records(now, stream, 0, position, []Proposal{own("$made")})...)
		position = all[len(all)-1].end()
	}
	return all
}

// own returns an event of the server's own.
func own(kind string) Proposal {
	return Proposal{Kind: kind, Content: "application/json", Data: []byte("{}")}
}

// sameEvents reports whether a stream goes on with these events, by their ids.
func sameEvents(stream []*Record, events []Proposal) bool {
	return len(stream) >= len(events) && len(events) > 0 &&
		slices.EqualFunc(stream[:len(events)], events, func(r *Record, p Proposal) bool { return r.ID == p.ID })
}

// find returns the index of the first record at or above a position; exact reports that
// it is at the position.
func find(log []*Record, position uint64) (i int, exact bool) {
	return slices.BinarySearchFunc(log, position, func(r *Record, p uint64) int {
		switch {
		case r.Position < p:
			return -1
		case r.Position > p:
			return 1
		}
		return 0
	})
}

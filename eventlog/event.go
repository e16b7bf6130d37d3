// Package eventlog defines the stored events: named, versioned, immutable facts. It imports the
// standard library alone; what does IO is in the packages below.
package eventlog

import (
	"crypto/sha1" //nolint:gosec // RFC 9562 defines name-based UUIDs (version 5) by SHA-1
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Stream is the name of one aggregate's events: "tx-42431-0x…". At most [MaxStreamBytes].
type Stream string

// Version is the number of events in a stream; 0: the stream does not exist.
type Version uint64

// Position is an event's place among all events of one store. Positions are ordered, may have
// gaps, and start above 0. They are valid in that store only.
type Position uint64

// ID identifies an event. The caller of an append chooses it, so that a retried append is
// recognized.
type ID [16]byte

// Limits of every store.
const (
	MaxStreamBytes = 200     // length of a stream's name
	MaxAppend      = 100     // events in one append
	MaxEventBytes  = 1 << 18 // data of one event
)

// DeriveID returns an event's name-based UUID (RFC 9562, version 5): the same stream, command and
// index always give the same id.
func DeriveID(stream Stream, command ID, index int) ID {
	h := sha1.New() //nolint:gosec // as above
	h.Write(command[:])
	h.Write([]byte(stream))
	_ = binary.Write(h, binary.BigEndian, uint32(index)) // a hash write never fails
	id := ID(h.Sum(nil)[:16])
	id[6], id[8] = id[6]&0x0f|0x50, id[8]&0x3f|0x80
	return id
}

// String returns the usual 8-4-4-4-12 form.
func (id ID) String() string {
	var text [36]byte
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// IsZero reports whether the id is unset.
func (id ID) IsZero() bool { return id == ID{} }

func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

func (id *ID) UnmarshalText(b []byte) error {
	digits := strings.ReplaceAll(string(b), "-", "")
	if len(digits) != hex.EncodedLen(len(id)) {
		return fmt.Errorf("event id %q is not a UUID", b)
	}
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return fmt.Errorf("event id %q is not a UUID", b)
	}
	return nil
}

// Meta is an event's origin.
type Meta struct {
	// Correlation is the id of the request or event at the start of the chain of causes.
	Correlation ID `json:"correlation,omitzero"`
	// Causation is the id of the event that directly led to this one.
	Causation ID `json:"causation,omitzero"`
	// Actor is the component that requested it: "api", "broadcaster", "watcher", ….
	Actor string `json:"actor,omitempty"`
	// Trace is the W3C traceparent of the request or attempt.
	Trace string `json:"trace,omitempty"`
	// Link ties the event to the one before it in its stream. The appender computes it.
	Link Link `json:"link,omitzero"`
}

// Event is a fact to append. Data is JSON.
type Event struct {
	ID   ID
	Name string // a literal with a version, such as tx.accepted.v1
	Data json.RawMessage
	Meta Meta
}

// Recorded is a stored event.
type Recorded struct {
	Event
	Stream   Stream
	Version  Version // version of the stream with this event; 1 for its first event
	Position Position
	At       time.Time // by the store's clock, to the microsecond
}

// Appended is the result of a successful append.
type Appended struct {
	Version  Version  // of the stream after the append
	Position Position // of the last event appended
	// Repeated means that the same events were stored already, by an earlier try whose answer was
	// lost. It is a success.
	Repeated bool
}

// Filter restricts a read of all events by stream names or event names. Set at most one of the
// two; an event passes if any prefix matches. The zero Filter passes everything.
type Filter struct {
	Streams []string // prefixes of stream names
	Names   []string // prefixes of event names
}

// Passes reports whether the filter passes an event.
func (f Filter) Passes(s Stream, name string) bool {
	if len(f.Streams) == 0 && len(f.Names) == 0 {
		return true
	}
	for _, p := range f.Streams {
		if strings.HasPrefix(string(s), p) {
			return true
		}
	}
	for _, p := range f.Names {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// Batch is a range of the log. Next is the position up to which the store has read, filtered
// events included: the reader's checkpoint once Events are handled. Live means that Next was the
// head of the log.
type Batch struct {
	Events []Recorded
	Next   Position
	Live   bool
}

// Pages reads batches in order up to the head of the log. It stops after an error.
func Pages(after Position, read func(after Position) (Batch, error)) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for {
			b, err := read(after)
			if err != nil {
				yield(Batch{}, err)
				return
			}
			if !yield(b, nil) || b.Live {
				return
			}
			after = b.Next
		}
	}
}

// Package consumer is what is remembered of those who consume the log's events from
// outside: groups of processes, of which one at a time is given the events, and the
// streams that a group could not get past.
package consumer

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Limits that every store keeps.
const (
	MaxGroupBytes  = 300  // length of a group's name
	MaxHolderBytes = 200  // length of a process's name
	MaxErrorBytes  = 1000 // of the error that a stream was parked for; the rest is cut off
)

// Claim is a process's right to a group's events, until it lapses.
type Claim struct {
	// Token grows with each new holder, and stays with renewals: what an earlier
	// holder still writes is refused by it.
	Token uint64
	// Position is the group's checkpoint: every event up to it was handled, or belongs
	// to a stream that is parked. 0 for a group that has saved none.
	Position event.Position
}

// Wish is what a person wants done with a parked stream.
type Wish string

const (
	Wait  Wish = ""      // leave it parked
	Retry Wish = "retry" // go on with the event that it was parked at
	Skip  Wish = "skip"  // leave that event out, and go on with the one behind it
)

// Parked is a stream that a group could not get past. Its later events are held back
// until somebody wishes it to go on.
type Parked struct {
	Stream   event.Stream
	Version  event.Version  // of the event that could not be handled
	Position event.Position // likewise
	Error    string         // what the last try came to
	Attempts int            // tries at that event
	Since    time.Time      // by the store's clock
	Wish     Wish
}

// Group is how a group stands, for people.
type Group struct {
	Name     string
	Position event.Position
	Holder   string // empty when nobody holds it
	Parked   int
}

// Errors of the port.
var (
	// ErrNotParked says that a stream which should go on is not parked, or not at the
	// event that was meant.
	ErrNotParked = errors.New("the stream is not parked at that event")
	// ErrSuperseded says that another process holds the group now, or that its
	// checkpoint is further than what was to be saved. Nothing was written.
	ErrSuperseded = errors.New("another process holds the consumer group")
)

// Text makes an error's text fit to be kept: valid, without zero bytes, which
// Postgres does not take, and at most [MaxErrorBytes] long.
func Text(err error) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= MaxErrorBytes {
		return text
	}
	cut := MaxErrorBytes
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

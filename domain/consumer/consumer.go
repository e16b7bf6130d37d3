// Package consumer defines the stored state of outside consumers of the log's events. A consumer
// group is a set of processes, one of which gets the events at a time. A stream that a group
// cannot process is parked.
package consumer

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Limits of every store.
const (
	MaxGroupBytes  = 300  // length of a group's name
	MaxHolderBytes = 200  // length of a process's name
	MaxErrorBytes  = 1000 // length of a parked stream's error; the rest is cut
)

// Claim is a process's lease of a group's events.
type Claim struct {
	// Token is a fencing token: it grows with each new holder and stays with renewals. Writes of
	// earlier holders are refused.
	Token uint64
	// Position is the group's checkpoint: every event up to it was handled, or belongs to a
	// parked stream. 0 for a group without a saved checkpoint.
	Position eventlog.Position
}

// Wish is an operator's command for a parked stream.
type Wish string

const (
	Wait  Wish = ""      // leave the stream parked
	Retry Wish = "retry" // continue with the event at which it was parked
	Skip  Wish = "skip"  // skip that event, and continue with the next
)

// Parked is a stream that a group could not process. Its later events are held back until an
// operator sets Wish.
type Parked struct {
	Stream   eventlog.Stream
	Version  eventlog.Version  // of the event that failed
	Position eventlog.Position // of the event that failed
	Error    string            // error of the last try
	Attempts int               // tries at that event
	Since    time.Time         // by the store's clock
	Wish     Wish
}

// Group is a group's status, for operators.
type Group struct {
	Name     string
	Position eventlog.Position
	Holder   string // empty: no holder
	Parked   int
}

// Errors of the port.
var (
	// ErrNotParked reports that the stream is not parked at the given event.
	ErrNotParked = errors.New("the stream is not parked at that event")
	// ErrSuperseded reports that another process holds the group, or that its checkpoint is
	// already ahead. Nothing was written.
	ErrSuperseded = errors.New("another process holds the consumer group")
)

// Text makes an error's text storable: valid UTF-8, without zero bytes, which Postgres refuses,
// and at most [MaxErrorBytes] long.
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

package safeguard

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Stream is the name of the stream of all safeguards.
const Stream eventlog.Stream = "safeguards"

// Event is a fact about safeguards.
//
//sumtype:decl
type Event interface{ fact() }

// Halted: nothing is accepted or signed in the scope from here on.
type Halted struct {
	Scope  Scope     `json:"scope"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Resumed: the scope's kill switch was turned off.
type Resumed struct {
	Scope  Scope     `json:"scope"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// TargetsSet: only these targets may be called, or all if there are none.
type TargetsSet struct {
	Scope   Scope         `json:"scope"`
	Targets chain.Targets `json:"targets,omitempty"`
	Actor   string        `json:"actor"`
	Reason  string        `json:"reason"`
	At      time.Time     `json:"at"`
}

// RateSet: the request rate was limited, or the limit removed if there is no rate.
type RateSet struct {
	Scope  Scope     `json:"scope"`
	Rate   *Rate     `json:"rate,omitempty"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func (Halted) fact()     {}
func (Resumed) fact()    {}
func (TargetsSet) fact() {}
func (RateSet) fact()    {}

// Codec maps event types to stored names, which never change. A changed shape gets a new name
// here, an upcaster for the old one, and a frozen sample in testdata/events.
func Codec() eventlog.Codec[Event] {
	return eventlog.NewCodec(
		eventlog.As[Event, Halted]("safeguard.halted.v1"),
		eventlog.As[Event, Resumed]("safeguard.resumed.v1"),
		eventlog.As[Event, TargetsSet]("safeguard.targets_set.v1"),
		eventlog.As[Event, RateSet]("safeguard.rate_set.v1"),
	)
}

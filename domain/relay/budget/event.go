package budget

import (
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Event is a fact about one chain's budget.
//
//sumtype:decl
type Event interface{ fact() }

// Reserved: these charges are reserved, each including earlier reservations for the same purpose.
// A purpose may be signed only after this event.
type Reserved struct {
	Day     Day       `json:"day"` // on which additions count
	Lane    Lane      `json:"lane"`
	Token   uint64    `json:"token"` // of the lane's holder
	Charges []Charge  `json:"charges"`
	At      time.Time `json:"at"`
}

// Settled: the reservations ended, at these actual costs.
type Settled struct {
	Day   Day       `json:"day"` // to which money counted on it is credited
	Lane  Lane      `json:"lane"`
	Token uint64    `json:"token"`
	Spent []Spent   `json:"spent"`
	At    time.Time `json:"at"`
}

// LimitSet: an account's daily limit was set.
type LimitSet struct {
	Account Account   `json:"account"`
	Limit   Limit     `json:"limit"`
	Actor   string    `json:"actor"`
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
}

func (Reserved) fact() {}
func (Settled) fact()  {}
func (LimitSet) fact() {}

// Codec maps event types to stored names, which never change. A changed shape gets a new name
// here, an upcaster for the old one, and a frozen sample in testdata/events.
func Codec() eventlog.Codec[Event] {
	return eventlog.NewCodec(
		eventlog.As[Event, Reserved]("budget.reserved.v1"),
		eventlog.As[Event, Settled]("budget.settled.v1"),
		eventlog.As[Event, LimitSet]("budget.limit_set.v1"),
	)
}

// StreamPrefix is the prefix of every budget's stream name.
const StreamPrefix = "budget-"

// Stream returns the name of a chain's budget stream.
func Stream(on chain.ID) eventlog.Stream { return eventlog.Stream(StreamPrefix + on.String()) }

// ParseStream returns the chain in a name made by [Stream].
func ParseStream(s eventlog.Stream) (chain.ID, error) {
	number, ok := strings.CutPrefix(string(s), StreamPrefix)
	on, err := chain.ParseID(number)
	if !ok || err != nil || Stream(on) != s {
		return 0, fmt.Errorf("stream %q is not a budget's", s)
	}
	return on, nil
}

package budget

import (
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Event is a fact about one chain's budget.
//
//sumtype:decl
type Event interface{ fact() }

// Reserved: so much is set aside for each of these, in all; what had been set aside for
// it before is part of that. It may be signed for from here on, and not before.
type Reserved struct {
	Day     Day       `json:"day"` // on which what is new counts
	Lane    Lane      `json:"lane"`
	Token   uint64    `json:"token"` // of the lane's holder
	Charges []Charge  `json:"charges"`
	At      time.Time `json:"at"`
}

// Settled: so much was spent, and nothing is set aside any more.
type Settled struct {
	Day   Day       `json:"day"` // to which comes back what was counted on it
	Lane  Lane      `json:"lane"`
	Token uint64    `json:"token"`
	Spent []Spent   `json:"spent"`
	At    time.Time `json:"at"`
}

// LimitSet: so much may be spent in a day.
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

// Codec names the facts for ever. A shape that changes gets a new name here, an
// upcaster for the old one, and a frozen sample in testdata/events.
func Codec() event.Codec[Event] {
	return event.NewCodec(
		event.As[Event, Reserved]("budget.reserved.v1"),
		event.As[Event, Settled]("budget.settled.v1"),
		event.As[Event, LimitSet]("budget.limit_set.v1"),
	)
}

// StreamPrefix begins the name of every budget's stream.
const StreamPrefix = "budget-"

// Stream names the events of a chain's budget.
func Stream(on chain.ID) event.Stream { return event.Stream(StreamPrefix + on.String()) }

// ParseStream reads which chain it is off the name that [Stream] gave.
func ParseStream(s event.Stream) (chain.ID, error) {
	number, ok := strings.CutPrefix(string(s), StreamPrefix)
	on, err := chain.ParseID(number)
	if !ok || err != nil || Stream(on) != s {
		return 0, fmt.Errorf("stream %q is not a budget's", s)
	}
	return on, nil
}

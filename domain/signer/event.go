package signer

import (
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Event is a fact about one signer.
//
//sumtype:decl
type Event interface{ fact() }

// Registered: the relay has a key of the account, which takes the intents of these pools
// and may call these targets. A later one replaces an earlier one.
type Registered struct {
	Pools   []string      `json:"pools,omitempty"`
	Targets chain.Targets `json:"targets,omitempty"` // none is all
	Actor   string        `json:"actor"`
	Reason  string        `json:"reason,omitempty"`
	At      time.Time     `json:"at"`
}

// Paused: nothing is signed with it. → Paused.
type Paused struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Draining: it finishes what it has, and takes nothing new. → Draining.
type Draining struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Drained: it has finished, and its key may be taken away. Draining → Drained.
type Drained struct {
	At time.Time `json:"at"`
}

// Resumed: an operator wants it to serve. Paused, Draining, Drained, Disabled → Serving,
// or Low.
type Resumed struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// ThresholdSet: an operator said which balance is the least to serve with.
type ThresholdSet struct {
	Threshold chain.Amount `json:"threshold"`
	Actor     string       `json:"actor"`
	Reason    string       `json:"reason"`
	At        time.Time    `json:"at"`
}

// ThresholdLearned: a node would not take what it could not pay, which took so much.
type ThresholdLearned struct {
	Threshold chain.Amount `json:"threshold"`
	Was       chain.Amount `json:"was,omitzero"`
	At        time.Time    `json:"at"`
}

// BalanceLow: it has less than it takes to serve. Serving → Low.
type BalanceLow struct {
	Balance   chain.Amount `json:"balance"`
	Threshold chain.Amount `json:"threshold"`
	At        time.Time    `json:"at"`
}

// BalanceRestored: it has enough again. Low → Serving.
type BalanceRestored struct {
	Balance   chain.Amount `json:"balance"`
	Threshold chain.Amount `json:"threshold"`
	At        time.Time    `json:"at"`
}

// Failed: it did not do what it is for.
type Failed struct {
	Report event.ID    `json:"report"`
	Kind   FailureKind `json:"kind"`
	Detail string      `json:"detail,omitempty"`
	Number int         `json:"number"` // in a row, from 1
	At     time.Time   `json:"at"`
}

// Recovered: it did what it is for, after failures.
type Recovered struct {
	Failures int       `json:"failures"` // there were in a row
	At       time.Time `json:"at"`
}

// Disabled: the failures are too many. → Disabled, until an operator acts.
type Disabled struct {
	Kind     FailureKind `json:"kind"`     // of the last failure
	Failures int         `json:"failures"` // in a row
	Limit    int         `json:"limit"`    // that was allowed
	At       time.Time   `json:"at"`
}

func (Registered) fact()       {}
func (Paused) fact()           {}
func (Draining) fact()         {}
func (Drained) fact()          {}
func (Resumed) fact()          {}
func (ThresholdSet) fact()     {}
func (ThresholdLearned) fact() {}
func (BalanceLow) fact()       {}
func (BalanceRestored) fact()  {}
func (Failed) fact()           {}
func (Recovered) fact()        {}
func (Disabled) fact()         {}

// Codec names the facts for ever. A shape that changes gets a new name here, an
// upcaster for the old one, and a frozen sample in testdata/events.
func Codec() event.Codec[Event] {
	return event.NewCodec(
		event.As[Event, Registered]("signer.registered.v1"),
		event.As[Event, Paused]("signer.paused.v1"),
		event.As[Event, Draining]("signer.draining.v1"),
		event.As[Event, Drained]("signer.drained.v1"),
		event.As[Event, Resumed]("signer.resumed.v1"),
		event.As[Event, ThresholdSet]("signer.threshold_set.v1"),
		event.As[Event, ThresholdLearned]("signer.threshold_learned.v1"),
		event.As[Event, BalanceLow]("signer.balance_low.v1"),
		event.As[Event, BalanceRestored]("signer.balance_restored.v1"),
		event.As[Event, Failed]("signer.failed.v1"),
		event.As[Event, Recovered]("signer.recovered.v1"),
		event.As[Event, Disabled]("signer.disabled.v1"),
	)
}

// StreamPrefix begins the name of every signer's stream.
const StreamPrefix = "signer-"

// Stream names a signer's events.
func Stream(on chain.ID, address chain.Address) event.Stream {
	return event.Stream(StreamPrefix + on.String() + "-" + address.String())
}

// ParseStream reads which signer it is off the name that [Stream] gave.
func ParseStream(s event.Stream) (on chain.ID, address chain.Address, err error) {
	rest, ok := strings.CutPrefix(string(s), StreamPrefix)
	number, account, found := strings.Cut(rest, "-")
	if ok && found {
		if on, err = chain.ParseID(number); err == nil {
			address, err = chain.ParseAddress(account)
		}
	}
	if !ok || !found || err != nil || Stream(on, address) != s {
		return 0, chain.Address{}, fmt.Errorf("stream %q is not a signer's", s)
	}
	return on, address, nil
}

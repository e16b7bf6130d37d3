package signer

import (
	"fmt"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Event is a fact about one signer.
//
//sumtype:decl
type Event interface{ fact() }

// Registered: the relay has a key of the account, which accepts the intents of these pools and
// may call these targets. A later Registered replaces an earlier one.
type Registered struct {
	Pools   []string      `json:"pools,omitempty"`
	Targets chain.Targets `json:"targets,omitempty"` // none: all
	Actor   string        `json:"actor"`
	Reason  string        `json:"reason,omitempty"`
	At      time.Time     `json:"at"`
}

// Paused: nothing is signed with its key. → Paused.
type Paused struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Draining: it finishes its work and accepts nothing new. → Draining.
type Draining struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Drained: it has finished, and its key may be removed. Draining → Drained.
type Drained struct {
	At time.Time `json:"at"`
}

// Resumed: an operator lets it serve. Paused, Draining, Drained, Disabled → Serving, or Low.
type Resumed struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// ThresholdSet: an operator set the minimum balance for serving.
type ThresholdSet struct {
	Threshold chain.Amount `json:"threshold"`
	Actor     string       `json:"actor"`
	Reason    string       `json:"reason"`
	At        time.Time    `json:"at"`
}

// ThresholdLearned: a node refused an unaffordable transaction; its cost is the new threshold.
type ThresholdLearned struct {
	Threshold chain.Amount `json:"threshold"`
	Was       chain.Amount `json:"was,omitzero"`
	At        time.Time    `json:"at"`
}

// BalanceLow: its balance is below the threshold. Serving → Low.
type BalanceLow struct {
	Balance   chain.Amount `json:"balance"`
	Threshold chain.Amount `json:"threshold"`
	At        time.Time    `json:"at"`
}

// BalanceRestored: its balance is sufficient again. Low → Serving.
type BalanceRestored struct {
	Balance   chain.Amount `json:"balance"`
	Threshold chain.Amount `json:"threshold"`
	At        time.Time    `json:"at"`
}

// Failed: it failed to sign, or its signed bytes were refused.
type Failed struct {
	Report eventlog.ID `json:"report"`
	Kind   FailureKind `json:"kind"`
	Detail string      `json:"detail,omitempty"`
	Number int         `json:"number"` // in a row, from 1
	At     time.Time   `json:"at"`
}

// Recovered: it succeeded after failures.
type Recovered struct {
	Failures int       `json:"failures"` // consecutive failures before
	At       time.Time `json:"at"`
}

// Disabled: it has failed too often. → Disabled, until an operator resumes it.
type Disabled struct {
	Kind     FailureKind `json:"kind"`     // of the last failure
	Failures int         `json:"failures"` // in a row
	Limit    int         `json:"limit"`    // failures that disable it
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

// Codec maps event types to stored names, which never change. A changed shape gets a new name
// here, an upcaster for the old one, and a frozen sample in testdata/events.
func Codec() eventlog.Codec[Event] {
	return eventlog.NewCodec(
		eventlog.As[Event, Registered]("signer.registered.v1"),
		eventlog.As[Event, Paused]("signer.paused.v1"),
		eventlog.As[Event, Draining]("signer.draining.v1"),
		eventlog.As[Event, Drained]("signer.drained.v1"),
		eventlog.As[Event, Resumed]("signer.resumed.v1"),
		eventlog.As[Event, ThresholdSet]("signer.threshold_set.v1"),
		eventlog.As[Event, ThresholdLearned]("signer.threshold_learned.v1"),
		eventlog.As[Event, BalanceLow]("signer.balance_low.v1"),
		eventlog.As[Event, BalanceRestored]("signer.balance_restored.v1"),
		eventlog.As[Event, Failed]("signer.failed.v1"),
		eventlog.As[Event, Recovered]("signer.recovered.v1"),
		eventlog.As[Event, Disabled]("signer.disabled.v1"),
	)
}

// StreamPrefix is the prefix of every signer's stream name.
const StreamPrefix = "signer-"

// Stream returns the name of a signer's event stream.
func Stream(on chain.ID, address chain.Address) eventlog.Stream {
	return eventlog.Stream(StreamPrefix + on.String() + "-" + address.String())
}

// ParseStream returns the signer in a name made by [Stream].
func ParseStream(s eventlog.Stream) (on chain.ID, address chain.Address, err error) {
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

package relay

import (
	"time"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Reasons why an intent is not signed yet, beside the refusals in [WaitCodes].
const (
	ErrEarly   = eventlog.Refusal("not-before")     // it asked for a later time
	ErrBehind  = eventlog.Refusal("behind-another") // an earlier intent of its ordering group gets its nonce first
	ErrFull    = eventlog.Refusal("lane-full")      // the lane has the maximum of nonces in flight
	ErrStalled = eventlog.Refusal("lane-stalled")   // an earlier transaction has waited long for a block
)

// WaitCodes lists every code of a [WaitsFor].
func WaitCodes() []eventlog.Refusal {
	return []eventlog.Refusal{
		safeguard.ErrHalted, guard.ErrStopped, budget.ErrSpent, budget.ErrOverLimit, ErrEarly, ErrBehind, ErrFull, ErrStalled, fee.ErrMarket,
	}
}

// WaitsFor is the reason why an intent is not signed yet, and since when.
type WaitsFor struct {
	Code   eventlog.Refusal
	Detail string
	Since  time.Time // zero if unknown
}

// waitingFor is the reason in an answer.
type waitingFor struct {
	Code   eventlog.Refusal `json:"code"`
	Detail string           `json:"detail,omitempty"`
}

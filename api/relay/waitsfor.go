package relay

import (
	"time"

	"github.com/tempo-watchtower/watchtower/commands/guard"
	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/safeguard"
)

// Why an intent is not signed for, beside the refusals that say so of themselves.
const (
	ErrBehind  = event.Refusal("behind-another") // another one of its row is to get a nonce before it
	ErrFull    = event.Refusal("lane-full")      // as many nonces are in flight as may be
	ErrStalled = event.Refusal("lane-stalled")   // what is before it has waited for a block for long
)

// WaitCodes lists every code of a [WaitsFor].
func WaitCodes() []event.Refusal {
	return []event.Refusal{
		safeguard.ErrHalted, guard.ErrStopped, budget.ErrSpent, budget.ErrOverLimit, ErrBehind, ErrFull, ErrStalled, fee.ErrMarket,
	}
}

// WaitsFor is what keeps an intent from being signed for, and since when.
type WaitsFor struct {
	Code   event.Refusal
	Detail string
	Since  time.Time // zero is not known
}

// waitingFor is what is shown of it.
type waitingFor struct {
	Code   event.Refusal `json:"code"`
	Detail string        `json:"detail,omitempty"`
}

package intent

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Command is an observation about an intent, or a request to change it. It carries its own time:
// nothing in this package reads a clock.
//
//sumtype:decl
type Command interface{ wish() }

// Create requests an intent. Repeating the same request adds nothing, even if the intent has
// ended or the request would no longer be allowed.
type Create struct {
	Request Request
	Origin  Origin
	At      time.Time
}

// Assign records that a lane has reserved a nonce for the intent. Assignment is one more than the
// intent's number of assignments. If Assign is refused, the lane releases the nonce. With the
// assignment and place that the intent has now, it records that a new holder continues the lane.
type Assign struct {
	Assignment int
	Place      Place
	Token      uint64
	At         time.Time
}

// Requeue records that the intent has lost the place of an assignment. The lane decides that,
// after it has recorded all attempts at the place here. If nothing was signed, only the current
// holder may release the place: a token below the intent's last known token is refused.
type Requeue struct {
	Assignment int
	Token      uint64 // of the lane's holder
	Evidence   Evidence
	At         time.Time
}

// Attempt records that bytes were signed for the intent and recorded by the lane. If Attempt is
// refused, the bytes must not be sent. A no-op is accepted only while the intent is to end or
// gives way. Any other attempt signed before the lane learned of that is accepted too, so that it
// is known if it lands; it need not be sent.
type Attempt struct {
	Assignment int
	Kind       AttemptKind
	Hash       chain.Hash
	Fee        chain.Fee
	At         time.Time
}

// Announce records where the canonical chain has an attempt: in the first block of Confirmations.
// The other blocks follow it in order.
type Announce struct {
	Hash          chain.Hash
	Receipt       chain.Receipt
	Confirmations []chain.Block
	// Settled means that the required number of confirmations is reached, or that the first block
	// is final.
	Settled bool
	At      time.Time
}

// LoseBlock records that block Was left the chain, which has Now at its height or above.
type LoseBlock struct {
	Was, Now chain.Block
	At       time.Time
}

// Cancel is the client's request to stop the intent.
type Cancel struct {
	Detail string
	At     time.Time
}

// Expire records that time has reached Now, in Unix seconds, by the chain's or the store's clock.
// No other clock ends a deadline.
type Expire struct {
	Now uint64
	At  time.Time
}

// Fail records that the relay will not carry the intent out, with Reason Simulation or Refused.
type Fail struct {
	Reason Reason
	Detail string
	At     time.Time
}

// SpeedUpsMax is the number of speed-ups of one intent. RaiseMin is the least increase over the
// speed-up before, in percent; pools demand it of a replacement. Both bound an intent's events,
// which each command about it and each turn of its lane reads.
const (
	SpeedUpsMax = 64
	RaiseMin    = 10
)

// SpeedUp is the client's request that the next attempts pay at least Fee per unit of gas.
type SpeedUp struct {
	Fee Amount
	At  time.Time
}

// Yield is an operator's request that the intent release the nonce of an assignment for which
// nothing is signed. A no-op then uses up the nonce, because later nonces wait for it. The intent
// waits for another nonce.
type Yield struct {
	Assignment int
	Detail     string // for people
	At         time.Time
}

// GiveWay: the intent's transaction is not mined, for example at its own fee ceiling, and later
// nonces wait for it. A no-op is to replace it. Once the no-op is final, a Requeue with evidence [Filled]
// ends the assignment, and the intent waits for another place. Until then, the intent's own
// transaction may still be mined.
type GiveWay struct {
	Assignment int
	Detail     string // for people
	At         time.Time
}

func (Create) wish()    {}
func (Assign) wish()    {}
func (Requeue) wish()   {}
func (Attempt) wish()   {}
func (Announce) wish()  {}
func (LoseBlock) wish() {}
func (Cancel) wish()    {}
func (Expire) wish()    {}
func (Fail) wish()      {}
func (SpeedUp) wish()   {}
func (Yield) wish()     {}
func (GiveWay) wish()   {}

// Refusals of client commands.
const (
	ErrUnknown        = eventlog.Refusal("unknown-intent")
	ErrInvalid        = eventlog.Refusal("invalid-intent")
	ErrTooLarge       = eventlog.Refusal("intent-too-large")
	ErrWebhookURL     = notice.ErrWebhookURL
	ErrInvalidKey     = eventlog.Refusal("invalid-idempotency-key") // shared by all requests with an idempotency key
	ErrDiffers        = eventlog.Refusal("idempotency-conflict")    // shared too: the key belongs to another request
	ErrTooFarAhead    = eventlog.Refusal("not-before-too-far")      // notBefore is too far in the future
	ErrDeadlinePassed = eventlog.Refusal("deadline-passed")
	ErrSettled        = eventlog.Refusal("intent-settled")
	ErrCanceling      = eventlog.Refusal("intent-canceling")
	ErrOverCeiling    = eventlog.Refusal("fee-over-ceiling")
	ErrSmallRaise     = eventlog.Refusal("fee-raise-too-small")
	ErrSpeedUps       = eventlog.Refusal("too-many-speed-ups")
)

// Refusals of the relay's commands.
const (
	ErrAssigned       = eventlog.Refusal("intent-assigned")        // it has a place, or had a later one
	ErrNotAssigned    = eventlog.Refusal("intent-not-assigned")    // it does not have that place
	ErrFenced         = eventlog.Refusal("intent-fenced")          // another holder of the lane continues that place
	ErrLive           = eventlog.Refusal("intent-attempt-live")    // an attempt may land
	ErrDeadlineOpen   = eventlog.Refusal("deadline-still-open")    // the deadline is not over, or there is none
	ErrNotCanceling   = eventlog.Refusal("intent-not-canceling")   // it is to be carried out at this nonce
	ErrNotSigned      = eventlog.Refusal("intent-not-signed")      // no attempt is signed that could give way
	ErrUnknownAttempt = eventlog.Refusal("intent-unknown-attempt") // no such hash was recorded
	ErrContradicted   = eventlog.Refusal("intent-contradicted")    // the chain contains an attempt that was ruled out as final
	ErrBrokenList     = eventlog.Refusal("intent-broken-list")     // its blocks do not follow one another
)

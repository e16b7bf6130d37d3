package intent

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Command is news about an intent, or a wish. It carries its own time: nothing in this
// package reads a clock.
//
//sumtype:decl
type Command interface{ wish() }

// Create asks for an intent. The same request again adds nothing, whatever has become
// of the intent, or is allowed now.
type Create struct {
	Request Request
	At      time.Time
}

// Assign says that a lane has reserved a nonce for the intent. Assignment is one more
// than the intent has had. Whoever is refused gives the nonce back. With the place of the
// last assignment it says that a new holder of the lane goes on with that.
type Assign struct {
	Assignment int
	Place      Place
	Token      uint64
	At         time.Time
}

// Requeue says that the intent has lost the place of an assignment. All attempts of
// that place have been recorded here before, or there were none: the lane knows, and
// has decided so. What nothing was signed for only its holder gives back: that of a token
// before the one that the intent has heard of last is refused.
type Requeue struct {
	Assignment int
	Token      uint64 // of the lane's holder
	Evidence   Evidence
	At         time.Time
}

// Attempt says that bytes have been signed for the intent, and that the lane has
// recorded them. Whoever is refused hands them to nobody. A no-op is taken only once the
// intent is to end, or to give way. What else was signed before that was heard of is taken all the same,
// so that it would be known if it landed; there is no need to hand it to anybody.
type Attempt struct {
	Assignment int
	Kind       AttemptKind
	Hash       chain.Hash
	Fee        chain.Fee
	At         time.Time
}

// Announce says where the canonical chain holds an attempt: in the first of
// Confirmations, on which the others stand.
type Announce struct {
	Hash          chain.Hash
	Receipt       chain.Receipt
	Confirmations []chain.Block
	// Settled means that there are as many as the chain is trusted after, or that the
	// first is final.
	Settled bool
	At      time.Time
}

// LoseBlock says that block Was is not in the chain: Now is, at its height or above.
type LoseBlock struct {
	Was, Now chain.Block
	At       time.Time
}

// Cancel is the client's wish that the intent be not carried out.
type Cancel struct {
	Detail string
	At     time.Time
}

// Expire says that time has reached Now, in Unix seconds, by the chain's clock or the
// store's: by no other is a deadline over.
type Expire struct {
	Now uint64
	At  time.Time
}

// Fail says that the relay will not carry the intent out: for Simulation or Refused.
type Fail struct {
	Reason Reason
	Detail string
	At     time.Time
}

// SpeedUpsMax is how often one intent can be sped up, and RaiseMin how many percent each
// speed-up is to be above the one before, as pools demand of a replacement. Both bound an
// intent's events, which each command about it and each turn of its lane reads.
const (
	SpeedUpsMax = 64
	RaiseMin    = 10
)

// SpeedUp is the client's wish that the next attempts pay at least Fee for a unit of gas.
type SpeedUp struct {
	Fee Amount
	At  time.Time
}

// Yield is an operator's wish that the intent give the nonce of an assignment back, for
// which nothing is signed, so that a no-op can use it up: nonces above it wait for that.
// The intent waits for another one.
type Yield struct {
	Assignment int
	Detail     string // why, for people
	At         time.Time
}

// GiveWay: the intent's transaction cannot be mined at its own fee ceiling, and later
// nonces wait for it. A no-op is to replace it. Once the no-op is final, a Requeue with
// evidence [Filled] takes the place from the intent, which waits for another. The intent's
// own transaction may still be mined before.
type GiveWay struct {
	Assignment int
	Detail     string // why, for people
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

// What clients are refused.
const (
	ErrUnknown        = event.Refusal("unknown-intent")
	ErrInvalid        = event.Refusal("invalid-intent")
	ErrTooLarge       = event.Refusal("intent-too-large")
	ErrWebhookURL     = event.Refusal("webhook-url")
	ErrInvalidKey     = event.Refusal("invalid-idempotency-key") // as of every request that has one
	ErrDiffers        = event.Refusal("idempotency-conflict")    // likewise: the key belongs to another wish
	ErrDeadlinePassed = event.Refusal("deadline-passed")
	ErrSettled        = event.Refusal("intent-settled")
	ErrCanceling      = event.Refusal("intent-canceling")
	ErrOverCeiling    = event.Refusal("fee-over-ceiling")
	ErrSmallRaise     = event.Refusal("fee-raise-too-small")
	ErrSpeedUps       = event.Refusal("too-many-speed-ups")
)

// What those who carry intents out are refused.
const (
	ErrAssigned       = event.Refusal("intent-assigned")        // it has a place, or had another meanwhile
	ErrNotAssigned    = event.Refusal("intent-not-assigned")    // it does not have that place
	ErrFenced         = event.Refusal("intent-fenced")          // another holder of the lane goes on with that place
	ErrLive           = event.Refusal("intent-attempt-live")    // an attempt may land
	ErrDeadlineOpen   = event.Refusal("deadline-still-open")    // there is time, or no deadline
	ErrNotCanceling   = event.Refusal("intent-not-canceling")   // it is to be carried out, at this nonce
	ErrNotSigned      = event.Refusal("intent-not-signed")      // nothing is that could give way
	ErrUnknownAttempt = event.Refusal("intent-unknown-attempt") // no such hash was recorded
	ErrContradicted   = event.Refusal("intent-contradicted")    // the chain holds what it had finally ruled out
	ErrBrokenList     = event.Refusal("intent-broken-list")     // blocks that do not stand on one another
)

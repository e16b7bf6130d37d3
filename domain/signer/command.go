package signer

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Command is news about a signer, or a wish. It carries its own time: nothing in this
// package reads a clock.
//
//sumtype:decl
type Command interface{ wish() }

// Register says what a signer is for. Given again it replaces what was said before.
type Register struct {
	Pools   []string // whose intents it takes; of none, only those that name it
	Targets chain.Targets
	Actor   string
	Reason  string // of an operator; a configuration has none
	At      time.Time
}

// Bounds of what can be kept.
const (
	PoolsMax     = 16
	NameMax      = 64 // bytes of a pool's name
	TargetsMax   = 256
	SelectorsMax = 32  // of one target
	TextMax      = 256 // bytes of an actor and of a reason
	FailuresMax  = 100 // in a row
)

// Pause is an operator's wish that nothing be signed with it.
type Pause struct {
	Actor, Reason string
	At            time.Time
}

// Drain is an operator's wish that it finish what it has and take nothing new.
type Drain struct {
	Actor, Reason string
	At            time.Time
}

// Finish tells that it has nothing left: no nonce of any of its lanes is open.
type Finish struct{ At time.Time }

// Resume is an operator's wish that it serve: whatever stopped it before, save a
// balance that is too low.
type Resume struct {
	Actor, Reason string
	At            time.Time
}

// SetThreshold is an operator's word on the least balance to serve with. What is learned
// later may raise it again. Zero is any balance.
type SetThreshold struct {
	Threshold     chain.Amount
	Actor, Reason string
	At            time.Time
}

// SeeBalance tells what the chain says that it has.
type SeeBalance struct {
	Balance chain.Amount
	At      time.Time
}

// LackFunds tells that a node refused a transaction for want of funds. Needed is what
// fees may cost of all that is in flight and of this one, at most what an ordinary
// transaction costs: else one that asks for more gas than the signer can pay stopped it for
// those that it can. Value is not in it: whoever
// asks for more of that than there is has a wish refused, and stops nobody else's. For
// the same reason both are of the money that the signer usually pays fees in: on Tempo a
// client may ask for a token that it has none of. No more than the balance is no want of
// the signer's, and adds nothing.
type LackFunds struct {
	Balance, Needed chain.Amount
	At              time.Time
}

// Fail tells that it did not do what it is for.
type Fail struct {
	// Report names the news, so that telling it again adds nothing.
	Report event.ID
	Kind   FailureKind
	Detail string
	// Limit is how many in a row are too many, 1 to [FailuresMax].
	Limit int
	At    time.Time
}

// FailureKind is what went wrong.
type FailureKind string

const (
	// NoSignature: whoever has the key did not sign, or did not answer.
	NoSignature FailureKind = "no-signature"
	// WrongSignature: what came is not of its key. One is too many.
	WrongSignature FailureKind = "wrong-signature"
	// Rejected: whoever has the key will not sign anything for us, whatever it is.
	Rejected FailureKind = "rejected"
)

// FailureKinds lists them.
func FailureKinds() []FailureKind { return []FailureKind{NoSignature, WrongSignature, Rejected} }

// Succeed tells that it signed, and that a node took what it signed.
type Succeed struct{ At time.Time }

func (Register) wish()     {}
func (Pause) wish()        {}
func (Drain) wish()        {}
func (Finish) wish()       {}
func (Resume) wish()       {}
func (SetThreshold) wish() {}
func (SeeBalance) wish()   {}
func (LackFunds) wish()    {}
func (Fail) wish()         {}
func (Succeed) wish()      {}

const (
	ErrUnknown = event.Refusal("unknown-signer")
	ErrInvalid = event.Refusal("invalid-signer")
	ErrPool    = event.Refusal("signer-not-in-pool")
	ErrTarget  = event.Refusal("target-not-of-signer")
)

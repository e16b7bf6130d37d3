package signer

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Command is an observation about a signer, or a request to change it. It carries its own time:
// nothing in this package reads a clock.
//
//sumtype:decl
type Command interface{ wish() }

// Register sets a signer's pools and targets, replacing earlier ones.
type Register struct {
	Pools   []string // pools whose intents it accepts; none: only intents that name the signer
	Targets chain.Targets
	Actor   string
	Reason  string // from an operator; empty from a configuration
	At      time.Time
}

// Bounds of the settings.
const (
	PoolsMax     = 16
	NameMax      = 64 // bytes of a pool's name
	TargetsMax   = 256
	SelectorsMax = 32  // of one target
	TextMax      = 256 // bytes of an actor and of a reason
	FailuresMax  = 100 // in a row
)

// Pause is an operator's request to sign nothing with the signer's key.
type Pause struct {
	Actor, Reason string
	At            time.Time
}

// Drain is an operator's request that the signer finish its work and accept nothing new.
type Drain struct {
	Actor, Reason string
	At            time.Time
}

// Finish records that no nonce of any of the signer's lanes is open.
type Finish struct{ At time.Time }

// Resume is an operator's request that the signer serve again. It ends every stop except a low
// balance.
type Resume struct {
	Actor, Reason string
	At            time.Time
}

// SetThreshold is an operator's minimum balance for serving. A threshold learned later may raise
// it again. 0: any balance.
type SetThreshold struct {
	Threshold     chain.Amount
	Actor, Reason string
	At            time.Time
}

// SeeBalance records the signer's balance on the chain.
type SeeBalance struct {
	Balance chain.Amount
	At      time.Time
}

// LackFunds records that a node refused a transaction for lack of funds. Needed is the highest
// fees of all transactions in flight and of this one, at most the cost of an ordinary
// transaction. Otherwise a transaction with more gas than the signer can pay would stop it for
// affordable ones. Needed excludes value: a client that asks for too much value gets its request
// refused, and must not stop other clients.
//
// For the same reason both amounts are in the signer's usual fee token: on Tempo a client may ask
// for a token of which the signer has none. If Balance covers Needed, the command adds nothing.
type LackFunds struct {
	Balance, Needed chain.Amount
	At              time.Time
}

// Fail records a failure of the signer.
type Fail struct {
	// Report identifies the failure, so that a repeated command adds nothing.
	Report eventlog.ID
	Kind   FailureKind
	Detail string
	// Limit is the number of consecutive failures that disables it, 1 to [FailuresMax].
	Limit int
	At    time.Time
}

// FailureKind is the kind of a failure.
type FailureKind string

const (
	// NoSignature: the key's holder did not sign or did not answer.
	NoSignature FailureKind = "no-signature"
	// WrongSignature: the signature was not made by the account's key. One such failure disables.
	WrongSignature FailureKind = "wrong-signature"
	// Rejected: the key's holder refuses to sign anything for this relay.
	Rejected FailureKind = "rejected"
)

// FailureKinds returns all kinds.
func FailureKinds() []FailureKind { return []FailureKind{NoSignature, WrongSignature, Rejected} }

// Succeed records that the key signed and a node accepted the signed bytes.
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
	ErrUnknown = eventlog.Refusal("unknown-signer")
	ErrInvalid = eventlog.Refusal("invalid-signer")
	ErrPool    = eventlog.Refusal("signer-not-in-pool")
	ErrTarget  = eventlog.Refusal("target-not-of-signer")
)

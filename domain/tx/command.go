package tx

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Command is news about a transaction, or a wish. It carries its own time:
// nothing in this package reads a clock.
//
//sumtype:decl
type Command interface{ wish() }

// Accept takes a transaction on. A hash that is known adds nothing.
type Accept struct{ Accepted }

// Report says what the endpoints answered to one broadcast attempt. Attempts are
// numbered from 1; one already recorded adds nothing.
type Report struct {
	Attempt int
	Answers []Answer
	// Everyone means that every healthy endpoint was asked: without it no
	// refusal is permanent.
	Everyone bool
	At       time.Time
}

// SeeReceipt says that a block holds the transaction.
type SeeReceipt struct {
	Receipt chain.Receipt
	At      time.Time
}

// SeeNonce says that at Block the chain wants nonce Current, and that no block up
// to that one holds the transaction.
type SeeNonce struct {
	Block   chain.Block
	Current uint64
	At      time.Time
}

// SeeTime says that the chain has reached Block, and that no block up to it holds
// the transaction.
type SeeTime struct {
	Block chain.Block
	At    time.Time
}

// LoseBlock says that block Was is not in the chain: Now is, at its height or above.
type LoseBlock struct {
	Was, Now chain.Block
	At       time.Time
}

// Finalize says that Final, and every block below it, can no longer leave the
// chain, and that the verdict's block is among them. Receipt is what is sure by now of
// an executed transaction; one that has another status than what was seen before is seen
// first.
type Finalize struct {
	Final   chain.Block
	Receipt *chain.Receipt // may be nil
	At      time.Time
}

// Cancel is the owner's wish that the bytes be sent no more.
type Cancel struct {
	Reason string
	At     time.Time
}

// DoubtGroup says that at Block the chain gave a reason why the access key may not
// sign in the sender's name.
type DoubtGroup struct {
	Reason string
	Block  chain.Block
	At     time.Time
}

// ConfirmGroup says that at Block the access key may sign in the sender's name, or
// that the block holds the transaction, which shows the same.
type ConfirmGroup struct {
	Block chain.Block
	At    time.Time
}

// Erase records that the signed bytes were erased.
type Erase struct{ At time.Time }

// Retire lets read models forget a settled transaction.
type Retire struct{ At time.Time }

func (Accept) wish()       {}
func (Report) wish()       {}
func (SeeReceipt) wish()   {}
func (SeeNonce) wish()     {}
func (SeeTime) wish()      {}
func (LoseBlock) wish()    {}
func (Finalize) wish()     {}
func (Cancel) wish()       {}
func (DoubtGroup) wish()   {}
func (ConfirmGroup) wish() {}
func (Erase) wish()        {}
func (Retire) wish()       {}

const (
	ErrUnknown        = event.Refusal("unknown-transaction")
	ErrAlreadyExpired = event.Refusal("already-expired")
	ErrTooFarAhead    = event.Refusal("valid-after-too-far") // it may not be sent before a time too far away
	ErrNonceCurrent   = event.Refusal("nonce-still-current") // the nonce can still be used
	ErrWindowOpen     = event.Refusal("window-still-open")
	ErrSettled        = event.Refusal("already-settled")
	ErrNotSettled     = event.Refusal("not-settled")
)

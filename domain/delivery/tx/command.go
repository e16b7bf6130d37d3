package tx

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Command is an observation about a transaction, or a request to change it. It carries its own
// time: nothing in this package reads a clock.
//
//sumtype:decl
type Command interface{ wish() }

// Accept accepts a transaction. A known hash adds no event, or Resubmitted for a new client.
type Accept struct{ Accepted }

// Report records the endpoints' answers to one broadcast attempt. Attempts are numbered from 1; a
// number that is not above the last recorded one adds nothing.
type Report struct {
	Attempt int
	Answers []Answer
	// Everyone means that every healthy endpoint was asked. Without it no refusal is permanent.
	Everyone bool
	At       time.Time
}

// SeeReceipt records that a block contains the transaction.
type SeeReceipt struct {
	Receipt chain.Receipt
	At      time.Time
}

// SeeNonce records that at Block the chain's next nonce is Current, and that no block up to Block
// contains the transaction.
type SeeNonce struct {
	Block   chain.Block
	Current uint64
	At      time.Time
}

// SeeTime records that the chain has reached Block, and that no block up to Block contains the
// transaction.
type SeeTime struct {
	Block chain.Block
	At    time.Time
}

// LoseBlock records that block Was left the chain, which has Now at its height or above.
type LoseBlock struct {
	Was, Now chain.Block
	At       time.Time
}

// Finalize records that Final and every block below it are final, the verdict's block included.
// Receipt is the final receipt of an executed transaction. If its status differs from the
// recorded one, the change is recorded before the verdict is sealed.
type Finalize struct {
	Final   chain.Block
	Receipt *chain.Receipt // may be nil
	At      time.Time
}

// Cancel is the owner's request to stop sending the bytes.
type Cancel struct {
	Reason string
	At     time.Time
}

// DoubtGroup records that at Block the chain gave a reason why the access key may not sign for
// the sender.
type DoubtGroup struct {
	Reason string
	Block  chain.Block
	At     time.Time
}

// ConfirmGroup records that at Block the access key may sign for the sender, or that the block
// contains the transaction, which proves the same.
type ConfirmGroup struct {
	Block chain.Block
	At    time.Time
}

// Erase records that the signed bytes were erased.
type Erase struct{ At time.Time }

// Retire lets read models drop a settled transaction.
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
	ErrUnknown        = eventlog.Refusal("unknown-transaction")
	ErrAlreadyExpired = eventlog.Refusal("already-expired")
	ErrTooFarAhead    = eventlog.Refusal("valid-after-too-far") // validAfter is too far in the future
	ErrNonceCurrent   = eventlog.Refusal("nonce-still-current") // the nonce can still be used
	ErrWindowOpen     = eventlog.Refusal("window-still-open")
	ErrSettled        = eventlog.Refusal("already-settled")
	ErrNotSettled     = eventlog.Refusal("not-settled")
)

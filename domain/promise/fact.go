package promise

import (
	"iter"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Sent says that signed bytes reached a node.
type Sent struct {
	Chain chain.ID
	Node  string
	Raw   []byte
	At    time.Time
	// ChainTime is the time of the newest block that the node had, in Unix seconds;
	// 0 is not known.
	ChainTime uint64
}

// Kind is what a client asked for.
type Kind string

const (
	Submit Kind = "submit" // one transaction of a submission
	Read   Kind = "read"   // one transaction
)

// Result is what a client knows after a call.
type Result string

const (
	OK      Result = "ok"
	Refused Result = "refused" // the service said no, and why
	Unknown Result = "unknown" // no answer, or one from somebody else on the way
)

// Call is one thing that a client asked for, and what it was told. A submission of
// several transactions is as many calls.
type Call struct {
	Kind  Kind
	Chain chain.ID
	// Hash is of the transaction: as the answer says it, for a submission that was ok.
	Hash   chain.Hash
	Result Result
	// Key is the Idempotency-Key, and Print a digest of the request that went with it.
	Key   string
	Print chain.Hash
	// Missing means that a read was answered that there is no such transaction;
	// Status is what it showed otherwise.
	Missing bool
	Status  tx.Status
	// Overload means that a refusal was for want of room or over a rate, and Later
	// that it told when to come back.
	Overload, Later bool
	Began, Ended    time.Time
}

// Chain is the truth about one chain: its canonical branch as it is now, whatever
// nodes say.
type Chain interface {
	// At is the canonical block of a height.
	At(number uint64) (chain.Block, bool)
	// Receipt is where the canonical chain holds a transaction.
	Receipt(hash chain.Hash) (chain.Receipt, bool)
	// Next is the nonce that the chain wants next in a sequence, if that is known.
	Next(s chain.Sequence) (uint64, bool)
	// Final reports whether a block is canonical and final, or was both at some time.
	Final(b chain.Block) bool
	// Left reports whether a block was canonical and was replaced, at any time.
	Left(hash chain.Hash) bool
	// Executed yields what the canonical chain holds.
	Executed() iter.Seq2[chain.Hash, chain.Receipt]
}

// End is the end of a history.
type End struct {
	Now time.Time
	// Quiet means that all trouble is over, and has been for long enough that
	// whatever could be done has been done. Then what may still be open are only
	// transactions that never expire and wait for something.
	Quiet bool
	// Queue finds a transaction's row in the due queue; nil leaves it out.
	Queue func(id chain.ID, hash chain.Hash) (tx.Work, bool)
	// Behind is how far the due queue may be behind the log while the service runs: a
	// transaction whose last event is younger is not looked for in it.
	Behind time.Duration
}

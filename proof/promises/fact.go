package promises

import (
	"iter"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Sent is the fact that signed bytes reached a node.
type Sent struct {
	Chain chain.ID
	Node  string
	Raw   []byte
	At    time.Time
	// ChainTime is the time of the node's newest block, in Unix seconds; 0: unknown.
	ChainTime uint64
}

// Kind is the kind of a client's call.
type Kind string

const (
	Submit Kind = "submit" // one transaction of a submission
	Read   Kind = "read"   // one transaction
)

// Result is a call's result for the client.
type Result string

const (
	OK      Result = "ok"
	Refused Result = "refused" // the service refused, with a reason
	Unknown Result = "unknown" // no answer, or an answer from a proxy
)

// Call is one request of a client with its answer. A submission of several transactions is one
// call per transaction.
type Call struct {
	Kind  Kind
	Chain chain.ID
	// Hash is the transaction's hash: for a successful submission, the answer's.
	Hash   chain.Hash
	Result Result
	// Key is the Idempotency-Key. Print is a digest of its request.
	Key   string
	Print chain.Hash
	// Missing means that a read found no such transaction. Otherwise Status is the shown status.
	Missing bool
	Status  tx.Status
	// Overload means a refusal for lack of capacity or over a rate limit. Later means that it
	// said when to come back.
	Overload, Later bool
	Began, Ended    time.Time
}

// Chain is the truth about one chain: its current canonical branch, independent of nodes'
// answers.
type Chain interface {
	// At returns the canonical block of a height.
	At(number uint64) (chain.Block, bool)
	// Receipt returns a transaction's receipt on the canonical chain.
	Receipt(hash chain.Hash) (chain.Receipt, bool)
	// Next returns the chain's next nonce in a sequence, if known.
	Next(s chain.Sequence) (uint64, bool)
	// Final reports whether a block is, or ever was, canonical and final.
	Final(b chain.Block) bool
	// Left reports whether a block was ever canonical and then replaced.
	Left(hash chain.Hash) bool
	// Executed yields the transactions on the canonical chain.
	Executed() iter.Seq2[chain.Hash, chain.Receipt]
}

// End is the end of a history.
type End struct {
	Now time.Time
	// Quiet means that all faults are over, for long enough that all possible work is done. Only
	// transactions that never expire and wait for something may still be open.
	Quiet bool
	// Queue returns a transaction's row in the due queue; nil skips the check.
	Queue func(id chain.ID, hash chain.Hash) (tx.Work, bool)
	// Behind is how far the due queue may lag behind the log while the service runs: younger
	// transactions are not looked for in it.
	Behind time.Duration
}

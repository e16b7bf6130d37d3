package tx

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Phase is how far a transaction is, as the due queue cares.
type Phase string

const (
	Open      Phase = "open"      // to be sent, again and again
	Announced Phase = "announced" // a verdict rests on a block that is not final
	Watched   Phase = "watched"   // canceled or invalid: never sent, its hash still looked for
	Sealed    Phase = "sealed"    // its verdict's block is final; kept a while to notice the impossible
)

// Work is the due queue's row about one transaction. It follows from the log,
// save Attempts, Note and SentAt, which are counters between two recorded facts.
type Work struct {
	Chain    chain.ID
	Hash     chain.Hash
	Sender   chain.Address
	NonceKey chain.NonceKey
	Nonce    uint64
	Account  Account
	Client   string // that submitted it first: the queue gives each client its turn
	Bytes    int    // length of what was received
	// Claimed: an access key signed, and neither the chain nor the account's own key has
	// said that it may sign for Sender.
	Claimed    bool
	EligibleAt uint64 // Unix seconds
	ExpiresAt  uint64 // Unix seconds, 0 never
	Phase      Phase
	Verdict    Status      // of an announced or sealed row
	Block      chain.Block // the block the verdict rests on: number and hash
	NextAt     time.Time   // when to act next; meaningful while open
	Attempts   int         // broadcast attempts begun, counting those not recorded
	Note       string      // the last attempt's outcome, in a few words
	SentAt     time.Time   // of the last attempt; zero before the first
	// Parked means that a full window of open transactions with lower nonces
	// comes first, so this one is not leased.
	Parked bool
	// WaitNonce is set while the chain still wants a lower nonce than ours:
	// the nonce it wants, plus one (0 is "not waiting").
	WaitNonce uint64
	WaitSince time.Time
	// HeldSince is since when the row is set aside because its account is on hold:
	// it is not leased, another row of the account probes. Of a row just leased it
	// is since when no row of the account did well, if the row probes for it.
	HeldSince time.Time
}

// Named is the sequence that the signed bytes name.
func (w Work) Named() chain.Sequence {
	return chain.Sequence{Chain: w.Chain, Sender: w.Sender, Key: w.NonceKey}
}

// Sequence is where the row has its place: the sequence that the bytes name, unless the
// sender is only claimed. Claimed rows of one client share a sequence that is no account's,
// so that the named account's rows never wait for them. The expiring key makes no
// sequence, and a block that holds the transaction has shown whose it is.
func (w Work) Sequence() chain.Sequence {
	if !w.Apart() {
		return w.Named()
	}
	digest := chain.Keccak([]byte("watchtower: transactions whose sender is only claimed\n"), []byte(w.Client))
	return chain.Sequence{Chain: w.Chain, Sender: chain.Address(digest[:20]), Key: chain.NonceKey(digest)}
}

// Apart reports whether the row has no place in the sequence that its bytes name.
func (w Work) Apart() bool {
	return w.Claimed && w.Verdict != StatusExecuted && !w.NonceKey.IsExpiring()
}

// Change is what one recorded fact means to the due queue. Exactly one of the
// pointers, or Close, is set. Applying a change twice changes nothing more.
type Change struct {
	Chain    chain.ID
	Hash     chain.Hash
	Open     *Work      // a new row; ignored when the row exists
	Attempt  *Attempted // a recorded broadcast attempt
	Announce *Verdict   // phase Announced on this block
	Reopen   *Reopened  // the verdict is withdrawn
	Seal     *Verdict   // phase Sealed
	Watch    bool       // phase Watched
	Confirm  bool       // the sender is no longer only claimed
	Refill   *Refill    // what a row of before clients lacks
	Close    bool       // the row goes
}

// Refill is what rows lack that were written before the queue knew of clients: their Bytes
// are 0. It changes no other row.
type Refill struct {
	Client  string
	Bytes   int // never 0
	Claimed bool
}

// Attempted is a recorded attempt. It changes only a row whose count is below
// Number: at Number or beyond, the worker that made the attempt has spoken itself.
type Attempted struct {
	Number int
	At     time.Time
	NextAt time.Time
	Note   string
}

// Verdict is an announced or sealed end.
type Verdict struct {
	Status Status
	Block  chain.Block
}

// Reopened withdraws a verdict: phase To (Open or Watched), due At. A row that was
// never attempted may have lost its verdict long before it is eligible (another used
// its nonce, in a block that left the chain); it is not due before then.
type Reopened struct {
	To   Phase
	At   time.Time
	Lead time.Duration // how long before it is eligible it may be sent
}

// Due is when the row is acted on again.
func (r Reopened) Due(w Work) time.Time {
	if w.Attempts > 0 {
		return r.At
	}
	return FirstDue(w.EligibleAt, r.Lead, r.At)
}

// FirstDue is when to act first on what is eligible at a time (Unix seconds), less
// the lead, but not before it was there.
func FirstDue(eligibleAt uint64, lead time.Duration, at time.Time) time.Time {
	const farFuture = 1 << 40
	if due := time.Unix(int64(min(eligibleAt, farFuture)), 0).Add(-lead); due.After(at) {
		return due
	}
	return at
}

// Done is what a worker has to say after an attempt on leased work: the lease
// ends and the row is due again at NextAt. A row that is no longer open, or is
// leased to another holder, is left alone.
type Done struct {
	Chain     chain.ID
	Hash      chain.Hash
	Attempts  int
	NextAt    time.Time
	SentAt    time.Time // zero: no attempt was made, keep the old one
	Note      string
	WaitNonce uint64 // see [Work]; WaitSince is kept when already waiting
	// Standing of Account, if there is news of it. An account that is unable is put
	// on hold until NextAt, and the row with it. What else is said of one on hold:
	// able lets two more of its rows go, unclear has it probed again at NextAt, and
	// unasked at once, by another row.
	Account  Account
	Standing Standing
}

// Depth is how full a chain's due queue is.
type Depth struct {
	// Open transactions that may be sent; of these, Waiting ones are known to
	// wait for a lower nonce. Parked ones are open too, and not counted in Open.
	Open, Waiting, Parked int
	// Watched, Announced and Sealed are phases.
	Watched, Announced, Sealed int
	// Due ones are open, and nobody has leased them although their time has
	// come: OldestDue ago the first of them.
	Due       int
	OldestDue time.Duration
}

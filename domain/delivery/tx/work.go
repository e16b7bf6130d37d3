package tx

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Phase is a transaction's stage in the due queue.
type Phase string

const (
	Open      Phase = "open"      // to be sent repeatedly
	Announced Phase = "announced" // has a verdict whose block is not final
	Watched   Phase = "watched"   // canceled or invalid: never sent, but its hash is looked for in blocks
	Sealed    Phase = "sealed"    // its verdict's block is final; kept for a while to detect a finality violation
)

// Work is one transaction's row in the due queue. It is derived from the log, except Attempts,
// Note and SentAt, which count between two recorded events.
type Work struct {
	Chain    chain.ID
	Hash     chain.Hash
	Sender   chain.Address
	NonceKey chain.NonceKey
	Nonce    uint64
	Account  Account
	// Client is the first submitter: the queue serves clients in turn. A leased row has the Client,
	// Account and HeldSince of the owner in whose turn it was leased.
	Client string
	Bytes  int // length of the received bytes
	// Claimed: an access key signed, and neither the chain nor the account's own key has
	// confirmed that it may sign for Sender.
	Claimed bool
	// Shared: other clients have submitted the same bytes. Each of them is an [Owner] of the row.
	Shared     bool
	EligibleAt uint64 // Unix seconds
	ExpiresAt  uint64 // Unix seconds, 0: never
	Phase      Phase
	Verdict    Status      // of an announced or sealed row
	Block      chain.Block // the verdict's block: number and hash only
	NextAt     time.Time   // time of the next attempt; valid in phase open
	Attempts   int         // broadcast attempts begun, including unrecorded ones
	Note       string      // the last attempt's outcome, in a few words
	SentAt     time.Time   // time of the last attempt; zero before the first
	// Parked means that the sequence's window is full of open rows with lower nonces, so this row
	// is not leased.
	Parked bool
	// WaitNonce is set while the chain's next nonce is below Nonce: the chain's next nonce plus
	// one. 0: not waiting.
	WaitNonce uint64
	WaitSince time.Time
	// HeldSince is when the row was set aside because its account is on hold. Such a row is not
	// leased; another row of the account probes. On a leased probe row, it is the time since
	// which no row of the account has succeeded.
	HeldSince time.Time
	// Owners are the further owners, by client. Only Find fills them in.
	Owners []Owner
}

// In returns the row in the turn of the first of its owners that is wanted: with the owner's due time
// and hold. It is the row itself if no owner is.
func (w Work) In(wanted func(client string) bool) Work {
	if wanted(w.Client) {
		return w
	}
	for _, o := range w.Owners {
		if wanted(o.Client) {
			w.Client, w.Account, w.NextAt, w.HeldSince = o.Client, o.Account, o.NextAt, o.HeldSince
			return w
		}
	}
	return w
}

// Named returns the sequence that the signed bytes name.
func (w Work) Named() chain.Sequence {
	return chain.Sequence{Chain: w.Chain, Sender: w.Sender, Key: w.NonceKey}
}

// Sequence returns the sequence in which the row has its place: the sequence named by the bytes,
// unless the sender is only claimed. Claimed rows of one client share a sequence that belongs to
// no account, so that the named account's rows never wait for them. A claimed row with several
// owners has a sequence of its own: no owner's rows park another owner's. Rows with the expiring key
// and executed rows keep the named sequence: the expiring key has no order, and a block that
// contains the transaction has confirmed its sender.
func (w Work) Sequence() chain.Sequence {
	if !w.Apart() {
		return w.Named()
	}
	digest := chain.Keccak([]byte("watchtower: transactions whose sender is only claimed\n"), []byte(w.Client))
	if w.Shared {
		digest = chain.Keccak([]byte("watchtower: a claimed transaction of several clients\n"), w.Hash[:])
	}
	return chain.Sequence{Chain: w.Chain, Sender: chain.Address(digest[:20]), Key: chain.NonceKey(digest)}
}

// Apart reports whether the row is outside the sequence that its bytes name.
func (w Work) Apart() bool {
	return w.Claimed && w.Verdict != StatusExecuted && !w.NonceKey.IsExpiring()
}

// handed reports whether a node accepted the bytes at the last attempt, so that no owner has to send
// them before the next one.
func (w Work) handed() bool {
	return w.Phase == Open && w.Attempts > 0 && w.Note == Outcome{Class: Taken}.String()
}

// Owner is another client that has submitted a row's bytes. The row is due in its turn too, at a
// time of its own and under its own hold, as if the other owners did not exist. But only one of the
// owners' leases runs at a time.
type Owner struct {
	Client  string
	Account Account
	NextAt  time.Time // time of the next attempt in this owner's turn
	// HeldSince is as in [Work], of this owner's account. Only the queue sets it.
	HeldSince time.Time
}

// Change is the effect of one recorded event on the due queue. Exactly one of Open, Join, Attempt,
// Announce, Reopen, Seal, Watch, Confirm, Refill and Close is set. Changes are idempotent.
type Change struct {
	Chain    chain.ID
	Hash     chain.Hash
	Open     *Work      // a new row; ignored when the row exists
	Join     *Owner     // another owner of the row; ignored when it is an owner already
	Attempt  *Attempted // a recorded broadcast attempt
	Announce *Verdict   // set phase Announced, with this verdict
	Reopen   *Reopened  // withdraw the verdict
	Seal     *Verdict   // set phase Sealed, with this verdict
	Watch    bool       // set phase Watched
	Confirm  bool       // the sender is no longer only claimed
	Refill   *Refill    // set the fields missing in rows from before clients
	Close    bool       // delete the row
}

// Refill sets the fields missing in rows that were written by an older version: before the queue
// had clients (rows with Bytes 0), or before it had further owners.
type Refill struct {
	Client  string
	Bytes   int // never 0
	Claimed bool
	Owners  []Owner // besides Client
}

// Attempted is a recorded attempt. It changes only a row whose count is below Number. At Number
// or above, the worker that made the attempt has already updated the row.
type Attempted struct {
	Number int
	At     time.Time
	NextAt time.Time
	Note   string
}

// Verdict is an announced or sealed verdict with its block.
type Verdict struct {
	Status Status
	Block  chain.Block
}

// Reopened withdraws a verdict: it sets phase To (Open or Watched), due At. A row that was never
// attempted may lose its verdict long before it is eligible: another transaction used its nonce,
// in a block that left the chain. Such a row is not due before it is eligible, less Lead.
type Reopened struct {
	To   Phase
	At   time.Time
	Lead time.Duration // how long before eligibility the row may be sent
}

// Due returns when the row is due next.
func (r Reopened) Due(w Work) time.Time {
	if w.Attempts > 0 {
		return r.At
	}
	return FirstDue(w.EligibleAt, r.Lead, r.At)
}

// FirstDue returns when a row is first due: lead before eligibleAt (Unix seconds), but not before
// `at`, the time of its acceptance.
func FirstDue(eligibleAt uint64, lead time.Duration, at time.Time) time.Time {
	const farFuture = 1 << 40
	if due := time.Unix(int64(min(eligibleAt, farFuture)), 0).Add(-lead); due.After(at) {
		return due
	}
	return at
}

// Done is a worker's result for leased work: the lease ends and the row is due again at NextAt. A
// row that is no longer open, or is leased to another holder, is unchanged.
type Done struct {
	Chain     chain.ID
	Hash      chain.Hash
	Attempts  int
	NextAt    time.Time
	SentAt    time.Time // zero: no attempt was made, keep the old time
	Note      string
	WaitNonce uint64 // as in [Work]; WaitSince is kept if the row already waits
	// ForAll: the result is the same in every owner's turn, so NextAt is the due time of all owners.
	// Otherwise NextAt is that of the owners with this Account. It matters for rows with several
	// owners alone.
	ForAll bool
	// Standing is the evidence about Account, empty if there is none. Unable puts the account on
	// hold until NextAt, and the row with it. For an account that is on hold: able releases two
	// more of its rows, unclear probes again at NextAt, and unasked probes at once with another
	// row.
	Account  Account
	Standing Standing
}

// Depth counts the rows of a chain's due queue.
type Depth struct {
	// Open rows may be sent. Waiting is the part of Open that is known to wait for a lower nonce.
	// Parked rows are in phase open too, but not counted in Open.
	Open, Waiting, Parked int
	// Sent counts rows in phase open of which a broadcast attempt began: their receipts are awaited.
	Sent int
	// Watched, Announced and Sealed count rows in those phases.
	Watched, Announced, Sealed int
	// Due counts open rows that are due and not leased. OldestDue is how long the first of them
	// has been due.
	Due       int
	OldestDue time.Duration
}

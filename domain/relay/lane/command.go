package lane

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Command is an observation about a lane, or a request to change it. It carries its own time and
// its holder's token: nothing in this package reads a clock.
//
//sumtype:decl
type Command interface{ wish() Token }

// Token is a fencing token. It grows with each holder that opens the lane; zero: none.
type Token uint64

// Open makes Holder the lane's holder. Token is one more than the last. A caller that is refused,
// because another holder opened the lane meanwhile, has to read the lane again. Repeated by the
// same holder it adds nothing, so Holder must identify one run of one process: a random value
// chosen at its start, never a machine's name.
type Open struct {
	Holder string
	Token  Token
	At     time.Time
}

// HolderMaxBytes is the longest holder name, in bytes.
const HolderMaxBytes = 128

// Advance records that the chain's next nonce may be ahead of the cursor. A nonce at or below the
// cursor adds nothing.
type Advance struct {
	Token   Token
	Witness Witness
	At      time.Time
}

// Reserve assigns nonces to intents in their order: released nonces first, the lowest first, then
// new ones from the cursor on. An intent that holds a nonce keeps it. Budget bounds the nonces in
// flight, and [OpenMax] the open ones. The last intents beyond these bounds get none; see
// [State.Held].
type Reserve struct {
	Token   Token
	Intents []chain.IntentID // at most [ReserveMax]
	Budget  int
	At      time.Time
}

// ReserveMax bounds the nonces that one command reserves or reclaims.
const ReserveMax = 1000

// OpenMax bounds the open nonces, landed ones included, so that the state stays bounded on a
// chain that grows without finalizing.
const OpenMax = 10_000

// Release takes back the nonces of intents for which nothing is signed. An intent without a nonce
// adds nothing.
type Release struct {
	Token   Token
	Intents []chain.IntentID // at most [BatchMax]
	Reason  string
	At      time.Time
}

// BatchMax bounds the nonces of one command: each may become two events of one append.
const BatchMax = eventlog.MaxAppend / 2

// Fill chooses no-ops for holes, see [State.Holes]. An intent that holds such a nonce loses it,
// and may get another.
type Fill struct {
	Token  Token
	Nonces []uint64 // rising, at most [BatchMax]
	At     time.Time
}

// Attempt records that bytes were signed and stored, before any endpoint has them.
type Attempt struct {
	Token  Token
	Signed []Signed // by rising nonce, at most [BatchMax]
	At     time.Time
}

// Signed is an attempt at a nonce, by its intent or by a no-op.
type Signed struct {
	Nonce  uint64
	Intent chain.IntentID // zero: a no-op
	Hash   chain.Hash
	Fee    chain.Fee
	// Unsent are the earlier attempts that were never delivered. No pool has them, so the fee
	// need not exceed theirs.
	Unsent []chain.Hash
}

// Land records which attempts are in the chain, and whether their blocks are final. A final
// landing closes the nonce here. Record it with the intent first: otherwise the intent looks as
// if nothing was done for it.
type Land struct {
	Token    Token
	Landings []Landing // by rising nonce, at most [BatchMax]
	At       time.Time
}

// Landing is one attempt in a block.
type Landing struct {
	Nonce  uint64
	Hash   chain.Hash
	Block  chain.Block
	Status uint64 // 1 success, 0 reverted
	Final  bool   // whether Block is final
}

// Unland records that block Was left the chain: attempts that landed in it are open again.
type Unland struct {
	Token    Token
	Was, Now chain.Block // Now is the canonical block that contradicts Was
	At       time.Time
}

// Lose records that the final chain is past nonces and contains none of their attempts.
type Lose struct {
	Token   Token
	Losses  []Loss // by rising nonce, at most [BatchMax]
	Witness Witness
	At      time.Time
}

// Loss is a nonce that another transaction has used.
type Loss struct {
	Nonce uint64
	// Absent are the attempts whose receipts were looked for at the witness's block or later, and
	// not found. It must list all attempts.
	Absent []chain.Hash
	Rival  chain.Hash // the transaction that used the nonce; zero: unknown
}

// Reclaim records that the cursor jumped over the chain's next nonce, and opens up to Count
// nonces from there. It adds nothing if that nonce was not jumped over.
type Reclaim struct {
	Token   Token
	Count   uint64 // at most [ReserveMax]
	Witness Witness
	At      time.Time
}

func (c Open) wish() Token    { return c.Token }
func (c Advance) wish() Token { return c.Token }
func (c Reserve) wish() Token { return c.Token }
func (c Release) wish() Token { return c.Token }
func (c Fill) wish() Token    { return c.Token }
func (c Attempt) wish() Token { return c.Token }
func (c Land) wish() Token    { return c.Token }
func (c Unland) wish() Token  { return c.Token }
func (c Lose) wish() Token    { return c.Token }
func (c Reclaim) wish() Token { return c.Token }

const (
	ErrUnknown     = eventlog.Refusal("unknown-lane")
	ErrFenced      = eventlog.Refusal("lane-fenced")        // the token is not the current holder's
	ErrUnlearned   = eventlog.Refusal("lane-nonce-unknown") // the lane's first nonce is not known yet
	ErrWitness     = eventlog.Refusal("witness-too-weak")
	ErrExhausted   = eventlog.Refusal("nonces-exhausted")
	ErrNotOpen     = eventlog.Refusal("nonce-not-open") // not reserved yet, or closed
	ErrAttempted   = eventlog.Refusal("nonce-attempted")
	ErrLanded      = eventlog.Refusal("nonce-landed")
	ErrNoHole      = eventlog.Refusal("nonce-is-no-hole")
	ErrIntent      = eventlog.Refusal("attempt-of-another-intent")
	ErrUnderpriced = eventlog.Refusal("replacement-underpriced")
	ErrAttempts    = eventlog.Refusal("too-many-attempts")
	ErrHash        = eventlog.Refusal("unknown-attempt")
	ErrUnchecked   = eventlog.Refusal("attempt-not-looked-for")
)

package lane

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Command is news about a lane, or a wish. It carries its own time, and the token of
// the holder that gives it: nothing in this package reads a clock.
//
//sumtype:decl
type Command interface{ wish() Token }

// Token grows with each holder that opens the lane. Zero is none.
type Token uint64

// Open makes somebody the lane's holder. Token is one more than the last one; who
// reads another one on the lane meanwhile has to read again. Given twice by the same
// holder it adds nothing, so Holder must name one run of one process: a random value
// chosen when that starts, never the name of a machine.
type Open struct {
	Holder string
	Token  Token
	At     time.Time
}

// HolderMaxBytes bounds how long a holder's name is.
const HolderMaxBytes = 128

// Advance tells that the chain wants a nonce that may lie ahead of the cursor. One
// that does not adds nothing, whatever the chain says.
type Advance struct {
	Token   Token
	Witness Witness
	At      time.Time
}

// Reserve hands out nonces to intents, in their order: released nonces first, the
// lowest before all, then new ones from the cursor on. An intent that holds a nonce
// keeps it. Budget is how many nonces may be in flight, and no more than [OpenMax] are
// open: of the intents that find no room the last ones get none, which [State.Held] tells.
type Reserve struct {
	Token   Token
	Intents []chain.IntentID // at most [ReserveMax]
	Budget  int
	At      time.Time
}

// ReserveMax bounds how many nonces are handed out, or reclaimed, by one command.
const ReserveMax = 1000

// OpenMax bounds how many nonces are open, landed ones too: a chain that goes on, and
// finalizes nothing, does not make a state without end.
const OpenMax = 10_000

// Release takes the nonces of intents back for which nothing was signed yet. What
// holds none adds nothing.
type Release struct {
	Token   Token
	Intents []chain.IntentID // at most [BatchMax]
	Reason  string
	At      time.Time
}

// BatchMax bounds how many nonces one command speaks of: each may become two events
// of one append.
const BatchMax = event.MaxAppend / 2

// Fill chooses no-ops for holes: see [State.Holes]. An intent that holds one of them
// loses it, and may be given another.
type Fill struct {
	Token  Token
	Nonces []uint64 // rising, at most [BatchMax]
	At     time.Time
}

// Attempt records that bytes were signed and are kept, before any endpoint has them.
type Attempt struct {
	Token  Token
	Signed []Signed // by rising nonce, at most [BatchMax]
	At     time.Time
}

// Signed is what was signed for a nonce: what its intent wants, or a no-op.
type Signed struct {
	Nonce  uint64
	Intent chain.IntentID // zero is a no-op
	Hash   chain.Hash
	Fee    chain.Fee
	// Unsent are those of the attempts before it that delivery does not have: no pool has
	// to be content with what takes their place.
	Unsent []chain.Hash
}

// Land tells which attempts the chain holds, and whether for good. What is told of an
// intent for good is forgotten here: it must have been recorded with the intent
// before, or the intent would be taken for one that nothing was done for.
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
	Final  bool   // the block is
}

// Unland tells that a block has left the chain: what had landed in it has not.
type Unland struct {
	Token    Token
	Was, Now chain.Block // Now is the canonical one that contradicts it
	At       time.Time
}

// Lose tells that the final chain is past nonces, and holds none of their attempts.
type Lose struct {
	Token   Token
	Losses  []Loss // by rising nonce, at most [BatchMax]
	Witness Witness
	At      time.Time
}

// Loss is one nonce that somebody else has used.
type Loss struct {
	Nonce uint64
	// Absent are the attempts whose receipts were looked for, at the witness's block
	// or later, and were not there: all of them.
	Absent []chain.Hash
	Rival  chain.Hash // what used the nonce; zero is not known
}

// Reclaim tells that the chain wants a nonce which the cursor had jumped over, and
// opens up to Count nonces from there. A nonce that was not jumped over adds nothing.
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
	ErrUnknown     = event.Refusal("unknown-lane")
	ErrFenced      = event.Refusal("lane-fenced")        // the token is not that of the lane's holder
	ErrUnlearned   = event.Refusal("lane-nonce-unknown") // nobody has said where the lane begins
	ErrWitness     = event.Refusal("witness-too-weak")
	ErrExhausted   = event.Refusal("nonces-exhausted")
	ErrNotOpen     = event.Refusal("nonce-not-open") // not handed out yet, or closed
	ErrAttempted   = event.Refusal("nonce-attempted")
	ErrLanded      = event.Refusal("nonce-landed")
	ErrNoHole      = event.Refusal("nonce-is-no-hole")
	ErrIntent      = event.Refusal("attempt-of-another-intent")
	ErrUnderpriced = event.Refusal("replacement-underpriced")
	ErrAttempts    = event.Refusal("too-many-attempts")
	ErrHash        = event.Refusal("unknown-attempt")
	ErrUnchecked   = event.Refusal("attempt-not-looked-for")
)

// Package relayer carries intents out: it gives them nonces, signs, and hands what was
// signed to delivery, of which it is a customer like any other.
package relayer

import (
	"context"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/lane"
	"github.com/tempo-watchtower/watchtower/domain/signer"
)

// Queue is the work queue of intents, in the work schema: rebuildable from the log,
// shared by all replicas. Lanes take from it what they have room for, those of a process
// so that they come to have the same in flight. It decides nothing: an intent that two have claimed, or that
// was claimed though it has a nonce, is sorted out by its stream, which takes one
// assignment. What every queue promises:
//
//   - Apply makes its changes, in order, and moves the reader's checkpoint in one
//     database transaction; event.ErrMoved if the checkpoint is not at from.
//   - A claim is one claimant's until its time to live has passed by the database's
//     clock, Return gives it back, or a change says what became of the intent.
//   - Claim gives out only what waits, is claimed by nobody, and fits the lane: of its
//     chain; for its signer, or for a pool of its; under its nonce key, or, unless c.OnlyAsked, under any.
//     Clients take turns, and a client's intents go by position; but what does not fit, or
//     has to wait for its row, keeps nobody else waiting. See [intent.Claim.Choose].
//   - Of a row, an intent is given out only if each earlier one that is in the queue
//     has a nonce in this very lane, or is claimed for it by this holder, now or
//     before. So as long as any of a row is open in a lane, the row is that lane's. It
//     says which one stands right before it: whoever claims looks where that one is, as
//     the queue may not have heard of it yet.
type Queue interface {
	Apply(ctx context.Context, reader string, from, to event.Position, changes []intent.Change) error
	// Claim gives out at most c.Limit intents, in the order of the clients' turns.
	Claim(ctx context.Context, c intent.Claim) ([]intent.Claimed, error)
	// Return ends a holder's claims of these intents. What it has not claimed, or what
	// does not wait any more, is left alone.
	Return(ctx context.Context, holder string, ids []chain.IntentID) error
	// Demand counts a chain's rows by client, and by whom and under which key they want to be
	// carried out; those that have a nonce by their lane. It may have to read all of them.
	Demand(ctx context.Context, id chain.ID) ([]intent.Demand, error)
	// Open counts a client's rows, up to a number.
	Open(ctx context.Context, client string, most int) (int, error)
}

// Signer signs in one account's name. What it gives is a signature of the Keccak-256
// of the payload. [ErrBadPayload] is about what was to be signed, and says that asking again
// is of no use; [ErrRejected] may be. All other errors are the signer's own failures.
type Signer interface {
	Address() chain.Address
	Sign(ctx context.Context, payload []byte) ([]byte, error)
}

const (
	// ErrWrongKey says that what came is not of the account's key.
	ErrWrongKey = event.Refusal("signer-wrong-key")
	// ErrUnknownKey says that whoever had the key has it no more.
	ErrUnknownKey = event.Refusal("signer-unknown-key")
	// ErrRejected says that whoever has the key will not sign this, or nothing for us.
	ErrRejected = event.Refusal("signer-rejected")
	// ErrBadPayload says that nobody could sign this.
	ErrBadPayload = event.Refusal("signer-bad-payload")
)

// Guard keeps the relay from doing harm: it says what a lane may be given, and what may
// be signed for, and hears what became of it. What every guard promises:
//
//   - Whatever operators have recorded before it is asked, on any replica, it heeds.
//   - It allows nothing before the worst that it may cost is recorded as set aside, where
//     that is limited. To be asked again sets aside no more than the difference.
//   - What was settled once is settled: telling it again adds nothing, nor does telling
//     of what was never set aside.
type Guard interface {
	// Room is how many more intents a lane may be given.
	Room(ctx context.Context, id chain.Sequence, load signer.Load) (int, error)
	// Allow answers for each request, nil of which is a no-op, whether it may be signed
	// for in the lane, at the charge in its place: nil, or the event.Refusal why not. An
	// error beside says that nothing is known; budget.ErrFenced, that the lane is somebody
	// else's.
	Allow(ctx context.Context, id chain.Sequence, token lane.Token, requests []*intent.Request, charges []budget.Charge) ([]error, error)
	// Open lists for what something is set aside in a lane, as far as this process has
	// heard.
	Open(ctx context.Context, id chain.Sequence) ([]budget.Purpose, error)
	// Settle tells what purposes did cost, for good.
	Settle(ctx context.Context, id chain.Sequence, token lane.Token, spent []budget.Spent) error
	// Failed tells that the lane's signer did not do what it is for, Succeeded that the
	// chain has what it signed.
	Failed(ctx context.Context, id chain.Sequence, kind signer.FailureKind, detail string) error
	Succeeded(ctx context.Context, id chain.Sequence) error
	// Lacks tells that a node would not take what the signer cannot pay. Needed is what
	// fees may cost of all that it has in flight in the lane, and at most what an ordinary
	// intent costs: what one client wants is not to stop the signer for all.
	Lacks(ctx context.Context, id chain.Sequence, needed chain.Amount) error
	// Balance is what a signer had when that was seen last, of the money that it usually
	// pays fees in.
	Balance(on chain.ID, address chain.Address) (balance chain.Amount, seen bool)
}

// Format is how transactions of a chain are written and read. An error of the first
// three is a *chain.Malformed when the chain has no way to say such a thing.
type Format struct {
	Type uint8 // of the transactions that are made, see [chain.Unsigned]
	// First is how much more gas the first transaction of a sequence needs, which makes
	// the account, or the nonce key.
	First uint64
	// Payload is what the sender signs, PayerPayload what the fee payer does; it is nil
	// where nobody else can pay.
	Payload      func(tx chain.Unsigned) ([]byte, error)
	PayerPayload func(tx chain.Unsigned, sender chain.Address) ([]byte, error)
	// Encode gives the transaction; payer is nil unless it is sponsored.
	Encode func(tx chain.Unsigned, signature, payer []byte) ([]byte, error)
	Decode func(raw []byte) (chain.Signed, error)
}

// Chain tells what has to be known of a chain before anything is signed.
type Chain interface {
	// Next is what nonce the chain wants next in a lane, as of the newest block or the
	// newest final one, and who says so: as many endpoints as have to agree. An error
	// says that nothing is known.
	Next(ctx context.Context, s chain.Sequence, final bool) (lane.Witness, error)
	// At is the canonical block of a height, on the word of as many endpoints as have to
	// agree.
	At(ctx context.Context, number uint64) (chain.Block, error)
	// Gas is the gas limit of a transaction that carries a request out in a lane: what
	// the request says, or what nodes estimate. An event.Refusal says that it would
	// revert, and why, if nodes had to be asked; or that it may not have so much.
	Gas(ctx context.Context, s chain.Sequence, r intent.Request) (uint64, error)
}

// Blocks are the canonical blocks that delivery's watcher remembers, lowest first, each
// the parent of the next.
type Blocks interface {
	Blocks(ctx context.Context, id chain.ID) ([]chain.Block, error)
}

// Fees tells what to offer.
type Fees interface {
	// Offer is what an attempt offers that is made now, on these terms. Its refusals are
	// those of [fee.Policy.Offer]; any other error says that the price is not known.
	Offer(ctx context.Context, t fee.Terms) (fee.Offer, error)
	// Bounds reports whether the operator's limit for one transaction keeps the fee of an
	// intent with so much gas below what other intents may offer: see [fee.Policy.Bounds].
	Bounds(gas uint64) bool
}

// Delivery takes signed transactions on, and keeps at it: *commands.Submit does.
type Delivery interface {
	Batch(ctx context.Context, id chain.ID, raws [][]byte, clients commands.Clients, meta event.Meta) ([]commands.Submission, error)
}

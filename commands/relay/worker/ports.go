// Package worker executes intents: it gives them nonces, signs their transactions, and
// hands these to delivery, as any client of delivery would. turn.go lists its steps. It imports
// commands, domain and eventlog, and no other process manager.
package worker

import (
	"context"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Queue is the work queue of intents, in the work schema: rebuildable from the log, shared
// by all replicas. Lanes claim as many intents as they have room for, and the lanes of one
// process balance their load. The queue decides nothing. If two claim one intent, or an
// intent with a nonce is claimed, the intent's stream resolves it: it takes one assignment.
// Every queue promises:
//
//   - Apply makes its changes, in order, and moves the reader's checkpoint in one
//     database transaction; eventlog.ErrMoved if the checkpoint is not at from.
//   - A claim is exclusive until its time to live has passed by the database's
//     clock, Return ends it, or a change gives the intent a place or closes it.
//   - Claim returns only unclaimed waiting intents that fit the lane: of its chain;
//     for its signer or one of its pools; and under its nonce key, or, unless
//     c.OnlyAsked, under any. Clients take turns, and a client's intents go by
//     position. An intent that does not fit, or that has to wait for its ordering
//     group, delays no other. See [intent.Claim.Choose].
//   - An intent of an ordering group is returned only if each earlier intent of the
//     group in the queue has a nonce in this very lane, or is claimed for it by this
//     holder, now or before. So while an intent of the group is open in a lane, the
//     group belongs to that lane. Claim also returns the intent right before it: the
//     claimant checks that intent's place, as the queue may lag behind the log.
type Queue interface {
	Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []intent.Change) error
	// Claim returns at most c.Limit intents, in the order of the clients' turns.
	Claim(ctx context.Context, c intent.Claim) ([]intent.Claimed, error)
	// Return ends a holder's claims of these intents. It ignores intents that the holder
	// has not claimed, or that no longer wait.
	Return(ctx context.Context, holder string, ids []chain.IntentID) error
	// Demand counts a chain's rows by client, requested signer or pool, and nonce key, and
	// rows with a nonce by their lane. It may have to read all rows.
	Demand(ctx context.Context, id chain.ID) ([]intent.Demand, error)
	// Open counts a client's rows, up to most.
	Open(ctx context.Context, client string, most int) (int, error)
	// Ahead returns the nearest earlier intent of an ordering group that has no nonce, among
	// the [intent.AheadMost] right before a position; zero if there is none. It changes
	// nothing.
	Ahead(ctx context.Context, row intent.Row, before eventlog.Position) (chain.IntentID, error)
}

// Signer signs for one account. A signature is over the Keccak-256 hash of the payload.
// [ErrBadPayload] concerns the payload, and a retry is useless. [ErrRejected] may concern
// the payload. All other errors are the signer's own failures. infra/keys implements it.
type Signer interface {
	Address() chain.Address
	Sign(ctx context.Context, payload []byte) ([]byte, error)
}

const (
	// ErrWrongKey: the signature was not made by the account's key.
	ErrWrongKey = eventlog.Refusal("signer-wrong-key")
	// ErrUnknownKey: the key holder no longer has the key.
	ErrUnknownKey = eventlog.Refusal("signer-unknown-key")
	// ErrRejected: the key holder refuses to sign this payload, or anything for us.
	ErrRejected = eventlog.Refusal("signer-rejected")
	// ErrBadPayload: no signer could sign this payload.
	ErrBadPayload = eventlog.Refusal("signer-bad-payload")
)

// Guard limits the harm that the relay can do: it decides how many intents a lane may claim
// and which may be signed, and is told the results. Every guard promises:
//
//   - It obeys every operator command recorded before the call, on any replica.
//   - It allows nothing before the highest possible cost is recorded as reserved,
//     where a limit applies. A repeated call reserves no more than the difference.
//   - Settling is idempotent: settling a purpose again adds nothing, nor does
//     settling a purpose for which nothing was reserved.
type Guard interface {
	// Room returns how many more intents a lane may be given.
	Room(ctx context.Context, id chain.Sequence, load signer.Load) (int, error)
	// Allow answers for each request (nil for a no-op) whether it may be signed in the
	// lane, at the charge in its place: nil, or an eventlog.Refusal with the reason. The error
	// means that nothing is decided; budget.ErrFenced means that another holder has the
	// lane.
	Allow(ctx context.Context, id chain.Sequence, token lane.Token, requests []*intent.Request, charges []budget.Charge) ([]error, error)
	// Open lists the purposes with reserved budget in a lane, as far as this process has
	// read the log.
	Open(ctx context.Context, id chain.Sequence) ([]budget.Purpose, error)
	// Settle records the final cost of purposes. Holes are nonces that no-ops will use: money
	// that was not spent is kept for those that have none.
	Settle(ctx context.Context, id chain.Sequence, token lane.Token, spent []budget.Spent, holes []uint64) error
	// Failed reports that the lane's signer failed to sign. Succeeded reports that a
	// transaction it signed is in a block.
	Failed(ctx context.Context, id chain.Sequence, kind signer.FailureKind, detail string) error
	Succeeded(ctx context.Context, id chain.Sequence) error
	// Lacks reports that a node refused a transaction for lack of funds. needed is the
	// highest fee cost of the signer's transactions in flight in the lane, at most the cost
	// of an ordinary intent: one client's expensive intent must not stop the signer for
	// all.
	Lacks(ctx context.Context, id chain.Sequence, needed chain.Amount) error
	// Balance returns a signer's last known balance of the currency that it usually pays
	// fees in.
	Balance(on chain.ID, address chain.Address) (balance chain.Amount, seen bool)
}

// Format encodes and decodes the transactions of a chain. An error of Payload, PayerPayload
// or Encode is a *chain.Malformed if the chain cannot express the transaction. The codecs in
// infra/chain implement it.
type Format struct {
	Type uint8 // of the transactions that are made, see [chain.Unsigned]
	// First is the additional gas of the first transaction of a sequence, which creates the
	// account or the nonce key.
	First uint64
	// Payload returns the bytes that the sender signs, PayerPayload the bytes that the fee
	// payer signs. PayerPayload is nil if the chain has no fee payers.
	Payload      func(tx chain.Unsigned) ([]byte, error)
	PayerPayload func(tx chain.Unsigned, sender chain.Address) ([]byte, error)
	// Encode returns the signed transaction; payer is nil unless it is sponsored.
	Encode func(tx chain.Unsigned, signature, payer []byte) ([]byte, error)
	Decode func(raw []byte) (chain.Signed, error)
}

// Chain reads the facts of a chain that are needed before signing. A pool of infra/chain/rpc
// implements it.
type Chain interface {
	// Next returns the nonce that the chain wants next in a lane, as of the newest block or
	// the newest final block. A quorum of endpoints, named in the Witness, agrees on it. An
	// error means that the nonce is unknown.
	Next(ctx context.Context, s chain.Sequence, final bool) (lane.Witness, error)
	// Final returns the newest final block, agreed on by a quorum of endpoints.
	Final(ctx context.Context) (chain.Block, error)
	// At returns the canonical block at a height, agreed on by a quorum of endpoints.
	At(ctx context.Context, number uint64) (chain.Block, error)
	// Gas returns the gas limit of a transaction that executes a request in a lane: the
	// request's own limit, or the nodes' estimate. An eventlog.Refusal means that it would
	// revert, with the reason, if nodes had to be asked; or that it may not use that much
	// gas.
	Gas(ctx context.Context, s chain.Sequence, r intent.Request) (uint64, error)
}

// Blocks returns the canonical blocks that delivery's watcher remembers, lowest first, each
// the parent of the next.
type Blocks interface {
	Blocks(ctx context.Context, id chain.ID) ([]chain.Block, error)
}

// Fees prices attempts.
type Fees interface {
	// Offer returns the offer of an attempt that is made now, on these terms. Its refusals
	// are the refusals of [fee.Policy.Offer]; any other error means that the price is
	// unknown.
	Offer(ctx context.Context, t fee.Terms) (fee.Offer, error)
	// Bounds reports whether the operator's limit for one transaction keeps the fee of an
	// intent with this much gas below the offers of other intents: see [fee.Policy.Bounds].
	Bounds(gas uint64) bool
}

// Delivery accepts signed transactions and delivers them; *commands.Submit implements it.
type Delivery interface {
	Batch(ctx context.Context, id chain.ID, raws [][]byte, clients commands.Clients, meta eventlog.Meta) ([]commands.Submission, error)
}

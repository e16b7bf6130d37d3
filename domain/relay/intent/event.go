package intent

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Event is a fact about one intent. Events that are reported to the client have a Sequence, which
// rises by one from 1.
//
//sumtype:decl
type Event interface{ fact() }

// Requested: the intent is accepted. Absent → Waiting.
type Requested struct {
	ID      chain.IntentID `json:"id"`
	Digest  chain.Hash     `json:"digest"` // of the request, by [Request.Digest]
	Request Request        `json:"request"`
	Origin  Origin         `json:"origin,omitzero"`
	At      time.Time      `json:"at"`
}

// Origin is the client's request that caused an intent. The relay's later events about the intent
// repeat it in their metadata. It is zero in events from before it existed.
type Origin struct {
	// Correlation is the request's id, or is derived from it: see [eventlog.Meta].
	Correlation eventlog.ID `json:"correlation,omitzero"`
	Trace       string      `json:"trace,omitempty"` // W3C traceparent
}

// OriginOf returns the origin that an event's metadata names.
func OriginOf(m eventlog.Meta) Origin { return Origin{m.Correlation, m.Trace} }

// Meta returns the metadata of an event that an actor adds to the intent.
func (o Origin) Meta(actor string) eventlog.Meta {
	return eventlog.Meta{Correlation: o.Correlation, Actor: actor, Trace: o.Trace}
}

// Place is a nonce in a lane on the request's chain.
type Place struct {
	Signer   chain.Address  `json:"signer"`
	NonceKey chain.NonceKey `json:"nonceKey"`
	Nonce    uint64         `json:"nonce"`
}

// Assigned: the intent has a nonce and may be signed. → Assigned.
type Assigned struct {
	Sequence   uint64    `json:"sequence"`
	Assignment int       `json:"assignment"` // counts from 1
	Place      Place     `json:"place"`
	Token      uint64    `json:"token"` // of the lane holder that reserved the nonce
	At         time.Time `json:"at"`
}

// TakenOver: the lane has a new holder, which found the intent's place there. Decisions of
// earlier holders about that place are no longer valid.
type TakenOver struct {
	Assignment int       `json:"assignment"`
	Token      uint64    `json:"token"` // of the lane's new holder
	At         time.Time `json:"at"`
}

// Evidence is the reason why an intent lost its place.
type Evidence struct {
	Kind EvidenceKind `json:"kind"`
	// Block is the final block that proves it; zero for Released.
	Block chain.Block `json:"block,omitzero"`
	// Hash is the transaction that used the nonce. Rival: zero if unknown. Filled: the no-op.
	Hash chain.Hash `json:"hash,omitzero"`
}

// EvidenceKind is how a place ended.
type EvidenceKind string

const (
	Released EvidenceKind = "released" // given back: nothing was ever signed for it
	Rival    EvidenceKind = "rival"    // a final block used the nonce, with no attempt of this intent
	Lapsed   EvidenceKind = "lapsed"   // the validity of every attempt ended before a final block, and none is in the chain
	Filled   EvidenceKind = "filled"   // a final block contains the no-op that the intent gave way to
)

// Requeued: the intent has no place any more. → Waiting. It is reported to the client unless
// nothing was signed.
type Requeued struct {
	Sequence   uint64     `json:"sequence,omitempty"`
	Assignment int        `json:"assignment"` // the one that ended
	Evidence   Evidence   `json:"evidence"`
	Was        chain.Hash `json:"was,omitzero"` // the last attempt
	At         time.Time  `json:"at"`
}

// AttemptKind is the purpose of signed bytes.
type AttemptKind string

const (
	First AttemptKind = "first" // the first attempt at this nonce
	Bump  AttemptKind = "bump"  // the same at a higher fee
	NoOp  AttemptKind = "no-op" // uses up the nonce, so that the intent does not land
)

// Attempted: bytes were signed for the intent's nonce and recorded. From here on any node may
// have them. → Submitted.
type Attempted struct {
	Sequence   uint64      `json:"sequence"`
	Assignment int         `json:"assignment"`
	Attempt    int         `json:"attempt"` // counts from 1, over all assignments
	Kind       AttemptKind `json:"kind"`
	Hash       chain.Hash  `json:"hash"`
	Replaces   chain.Hash  `json:"replaces,omitzero"` // the attempt before, at the same nonce
	Fee        chain.Fee   `json:"fee,omitzero"`      // offered per unit of gas; zero: unknown
	At         time.Time   `json:"at"`
}

// Reason is why an intent is not carried out.
type Reason string

const (
	Withdrawn  Reason = "canceled"   // canceled by its client
	Deadline   Reason = "deadline"   // it did not land in time
	Simulation Reason = "simulation" // simulated on a node, it would revert
	Refused    Reason = "refused"    // refused by the relay or the chain
	Reverted   Reason = "reverted"   // mined, but it reverted
)

// CancelRequested: the intent is to end without effect, but has a place where it may be signed
// already. It ends when it loses the place, or when a no-op is final there. → Canceling.
type CancelRequested struct {
	Reason Reason    `json:"reason"`
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
}

// SpeedUpRequested: the client wants the next attempts to pay at least Fee per unit of gas.
type SpeedUpRequested struct {
	Fee Amount    `json:"fee"`
	At  time.Time `json:"at"`
}

// YieldRequested: an operator wants the intent to release the nonce of an assignment for which
// nothing was signed. The lane's holder takes it back.
type YieldRequested struct {
	Assignment int       `json:"assignment"`
	Detail     string    `json:"detail,omitempty"`
	At         time.Time `json:"at"`
}

// GiveWayRequested: the intent's transaction is not mined, for example because gas costs more than
// its ceiling allows. Later nonces of the lane wait for it. A no-op is to replace it; once the no-op
// is final, the intent waits for another nonce.
type GiveWayRequested struct {
	Assignment int       `json:"assignment"`
	Detail     string    `json:"detail,omitempty"`
	At         time.Time `json:"at"`
}

// AnnouncedKind is the subject of an announcement.
type AnnouncedKind string

const (
	AboutReceipt       AnnouncedKind = "receipt"
	AboutConfirmations AnnouncedKind = "confirmations"
)

// Announced: the chain's state of the intent, as reported to the client. With kind AboutReceipt,
// the receipt's block contains the attempt; without a receipt, no block does. With kind
// AboutConfirmations, the blocks follow one another from the receipt's block on: only the new
// blocks, or all of them after a new fork.
type Announced struct {
	Sequence      uint64         `json:"sequence"`
	Kind          AnnouncedKind  `json:"kind"`
	Hash          chain.Hash     `json:"hash"`
	Receipt       *chain.Receipt `json:"receipt,omitempty"`
	Confirmations []chain.Block  `json:"confirmations,omitempty"`
	// NewFork means that the list does not continue the blocks announced before, but replaces
	// them.
	NewFork bool      `json:"newFork,omitempty"`
	At      time.Time `json:"at"`
}

// Reorged: the end's block left the chain, so the end is withdrawn.
type Reorged struct {
	Was chain.Block `json:"was"`
	Now chain.Block `json:"now"` // the chain's block in its place
	At  time.Time   `json:"at"`
}

// Completed: the intent was carried out. → Completed.
type Completed struct {
	Sequence uint64      `json:"sequence"`
	Hash     chain.Hash  `json:"hash"`
	Block    chain.Block `json:"block"`
	// Despite is set if the intent landed before a cancel or the deadline could stop it.
	Despite Reason    `json:"despite,omitempty"`
	At      time.Time `json:"at"`
}

// Failed: the intent will not be carried out. → Failed. Hash and Block are of the reverted
// attempt or the no-op; zero if there was none.
type Failed struct {
	Sequence uint64      `json:"sequence"`
	Reason   Reason      `json:"reason"`
	Detail   string      `json:"detail,omitempty"`
	Hash     chain.Hash  `json:"hash,omitzero"`
	Block    chain.Block `json:"block,omitzero"`
	At       time.Time   `json:"at"`
}

// Canceled: the client canceled the intent before it took effect. → Canceled. Hash and Block are
// of the no-op; zero if there was none.
type Canceled struct {
	Sequence uint64      `json:"sequence"`
	Detail   string      `json:"detail,omitempty"`
	Hash     chain.Hash  `json:"hash,omitzero"`
	Block    chain.Block `json:"block,omitzero"`
	At       time.Time   `json:"at"`
}

func (Requested) fact()        {}
func (Assigned) fact()         {}
func (TakenOver) fact()        {}
func (Requeued) fact()         {}
func (Attempted) fact()        {}
func (CancelRequested) fact()  {}
func (SpeedUpRequested) fact() {}
func (YieldRequested) fact()   {}
func (GiveWayRequested) fact() {}
func (Announced) fact()        {}
func (Reorged) fact()          {}
func (Completed) fact()        {}
func (Failed) fact()           {}
func (Canceled) fact()         {}

// Codec maps event types to stored names, which never change. A changed shape gets a new name
// here, an upcaster for the old one, and a frozen sample in testdata/events.
func Codec() eventlog.Codec[Event] {
	return eventlog.NewCodec(
		eventlog.Quick[Event]("intent.requested.v1", scanRequested),
		eventlog.As[Event, Assigned]("intent.assigned.v1"),
		eventlog.As[Event, TakenOver]("intent.taken_over.v1"),
		eventlog.As[Event, Requeued]("intent.requeued.v1"),
		eventlog.As[Event, Attempted]("intent.attempted.v1"),
		eventlog.As[Event, CancelRequested]("intent.cancel_requested.v1"),
		eventlog.As[Event, SpeedUpRequested]("intent.speed_up_requested.v1"),
		eventlog.As[Event, YieldRequested]("intent.yield_requested.v1"),
		eventlog.As[Event, GiveWayRequested]("intent.give_way_requested.v1"),
		eventlog.As[Event, Announced]("intent.announced.v1"),
		eventlog.As[Event, Reorged]("intent.reorged.v1"),
		eventlog.As[Event, Completed]("intent.completed.v1"),
		eventlog.As[Event, Failed]("intent.failed.v1"),
		eventlog.As[Event, Canceled]("intent.canceled.v1"),
	)
}

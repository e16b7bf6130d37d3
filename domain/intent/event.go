package intent

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Event is a fact about one intent. What the client is told of has a Sequence, which
// rises by one from 1 on.
//
//sumtype:decl
type Event interface{ fact() }

// Requested: the wish is taken on. Absent → Waiting.
type Requested struct {
	ID      chain.IntentID `json:"id"`
	Digest  chain.Hash     `json:"digest"` // of the request, by [Request.Digest]
	Request Request        `json:"request"`
	At      time.Time      `json:"at"`
}

// Place is a nonce in a lane of the request's chain.
type Place struct {
	Signer   chain.Address  `json:"signer"`
	NonceKey chain.NonceKey `json:"nonceKey"`
	Nonce    uint64         `json:"nonce"`
}

// Assigned: the intent has a nonce, and may be signed for. → Assigned.
type Assigned struct {
	Sequence   uint64    `json:"sequence"`
	Assignment int       `json:"assignment"` // counts from 1
	Place      Place     `json:"place"`
	Token      uint64    `json:"token"` // of the lane's holder who reserved the nonce
	At         time.Time `json:"at"`
}

// TakenOver: the lane has another holder, who has found that the intent has its place there.
// What the holders before him decide about that place does not hold any more.
type TakenOver struct {
	Assignment int       `json:"assignment"`
	Token      uint64    `json:"token"` // of the lane's new holder
	At         time.Time `json:"at"`
}

// Evidence is why an intent has no place any more.
type Evidence struct {
	Kind EvidenceKind `json:"kind"`
	// Block is the final block that shows it, of all but Released.
	Block chain.Block `json:"block,omitzero"`
	// Hash is what used the nonce: of Rival if that is known, of Filled the no-op.
	Hash chain.Hash `json:"hash,omitzero"`
}

// EvidenceKind is what became of a place.
type EvidenceKind string

const (
	Released EvidenceKind = "released" // given back: nothing was ever signed for it
	Rival    EvidenceKind = "rival"    // the final chain has used the nonce, and by no attempt
	Lapsed   EvidenceKind = "lapsed"   // the window of every attempt ended before a final block, and none is in the chain
	Filled   EvidenceKind = "filled"   // a final block holds the no-op that the intent gave way to
)

// Requeued: the intent has no place any more. → Waiting. The client is told, unless
// nothing was signed.
type Requeued struct {
	Sequence   uint64     `json:"sequence,omitempty"`
	Assignment int        `json:"assignment"` // that ended
	Evidence   Evidence   `json:"evidence"`
	Was        chain.Hash `json:"was,omitzero"` // the last attempt
	At         time.Time  `json:"at"`
}

// AttemptKind is what signed bytes are for.
type AttemptKind string

const (
	First AttemptKind = "first" // at this nonce
	Bump  AttemptKind = "bump"  // the same at a higher fee
	NoOp  AttemptKind = "no-op" // uses the nonce up, so that the intent does not land
)

// Attempted: bytes were signed for the intent's nonce and recorded; they may be
// anywhere from here on. → Submitted.
type Attempted struct {
	Sequence   uint64      `json:"sequence"`
	Assignment int         `json:"assignment"`
	Attempt    int         `json:"attempt"` // counts from 1, over all assignments
	Kind       AttemptKind `json:"kind"`
	Hash       chain.Hash  `json:"hash"`
	Replaces   chain.Hash  `json:"replaces,omitzero"` // the attempt before, at the same nonce
	Fee        chain.Fee   `json:"fee,omitzero"`      // that it offers for a unit of gas; zero is not known
	At         time.Time   `json:"at"`
}

// Reason is why an intent is not carried out.
type Reason string

const (
	Withdrawn  Reason = "canceled"   // its client wished so
	Deadline   Reason = "deadline"   // it did not land in time
	Simulation Reason = "simulation" // tried on a node, it would revert
	Refused    Reason = "refused"    // the relay or the chain will not have it
	Reverted   Reason = "reverted"   // it is in the chain, and did nothing
)

// CancelRequested: the intent is to end without effect, and has a place, where it may
// have been signed already. It ends when the place is taken from it, or a no-op is
// final there. → Canceling.
type CancelRequested struct {
	Reason Reason    `json:"reason"`
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
}

// SpeedUpRequested: the client wants the next attempts to pay at least this much for a
// unit of gas.
type SpeedUpRequested struct {
	Fee Amount    `json:"fee"`
	At  time.Time `json:"at"`
}

// YieldRequested: an operator wants the intent to give back the nonce of an assignment,
// for which nothing was signed. Whoever holds the lane takes it back.
type YieldRequested struct {
	Assignment int       `json:"assignment"`
	Detail     string    `json:"detail,omitempty"`
	At         time.Time `json:"at"`
}

// GiveWayRequested: gas costs more than the intent's transaction offers, and its ceiling
// allows no higher fee. Later nonces of the lane wait for it. A no-op is to replace it;
// once that is final, the intent waits for another nonce.
type GiveWayRequested struct {
	Assignment int       `json:"assignment"`
	Detail     string    `json:"detail,omitempty"`
	At         time.Time `json:"at"`
}

// AnnouncedKind is what an announcement is about.
type AnnouncedKind string

const (
	AboutReceipt       AnnouncedKind = "receipt"
	AboutConfirmations AnnouncedKind = "confirmations"
)

// Announced: the client is told where the chain has the intent. One about the receipt
// says which block holds which attempt; without a receipt, none does. One about
// confirmations says which blocks stand on one another from that block on, itself the
// first: those that are new, or, after a new fork, all.
type Announced struct {
	Sequence      uint64         `json:"sequence"`
	Kind          AnnouncedKind  `json:"kind"`
	Hash          chain.Hash     `json:"hash"`
	Receipt       *chain.Receipt `json:"receipt,omitempty"`
	Confirmations []chain.Block  `json:"confirmations,omitempty"`
	// NewFork means that what was announced before is not how the list begins.
	NewFork bool      `json:"newFork,omitempty"`
	At      time.Time `json:"at"`
}

// Reorged: the block that the end rests on has left the chain, so it is no end.
type Reorged struct {
	Was chain.Block `json:"was"`
	Now chain.Block `json:"now"` // what the chain has instead
	At  time.Time   `json:"at"`
}

// Completed: it is done. → Completed.
type Completed struct {
	Sequence uint64      `json:"sequence"`
	Hash     chain.Hash  `json:"hash"`
	Block    chain.Block `json:"block"`
	// Despite is why it should not have been: it landed before that could be prevented.
	Despite Reason    `json:"despite,omitempty"`
	At      time.Time `json:"at"`
}

// Failed: it will not be done. → Failed. Block and hash are what shows it: of the
// attempt that reverted, or of a no-op.
type Failed struct {
	Sequence uint64      `json:"sequence"`
	Reason   Reason      `json:"reason"`
	Detail   string      `json:"detail,omitempty"`
	Hash     chain.Hash  `json:"hash,omitzero"`
	Block    chain.Block `json:"block,omitzero"`
	At       time.Time   `json:"at"`
}

// Canceled: it will not be done, as its client wished. → Canceled. Block and hash are
// of the no-op, if it took one.
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

// Codec names the facts for ever. A shape that changes gets a new name here, an
// upcaster for the old one, and a frozen sample in testdata/events.
func Codec() event.Codec[Event] {
	return event.NewCodec(
		event.As[Event, Requested]("intent.requested.v1"),
		event.As[Event, Assigned]("intent.assigned.v1"),
		event.As[Event, TakenOver]("intent.taken_over.v1"),
		event.As[Event, Requeued]("intent.requeued.v1"),
		event.As[Event, Attempted]("intent.attempted.v1"),
		event.As[Event, CancelRequested]("intent.cancel_requested.v1"),
		event.As[Event, SpeedUpRequested]("intent.speed_up_requested.v1"),
		event.As[Event, YieldRequested]("intent.yield_requested.v1"),
		event.As[Event, GiveWayRequested]("intent.give_way_requested.v1"),
		event.As[Event, Announced]("intent.announced.v1"),
		event.As[Event, Reorged]("intent.reorged.v1"),
		event.As[Event, Completed]("intent.completed.v1"),
		event.As[Event, Failed]("intent.failed.v1"),
		event.As[Event, Canceled]("intent.canceled.v1"),
	)
}

// Package intent is what a client wants done, before key, nonce and fee are chosen.
//
//	Requested → waiting ⇄ assigned → submitted → mined → completed
//	               │         │           │          └──→ failed (reverted: never tried again)
//	               │         └─ canceling (a cancel, the deadline, a refusal: a no-op takes the nonce)
//	               │                └──→ canceled | failed when the no-op is final;
//	               │                     or mined and completed all the same, marked
//	               └──→ canceled | failed (nothing is signed: at once)
//	submitted, and gives way: a no-op takes the nonce; when that is final, back to waiting
//	completed, failed, canceled by a block that leaves the chain → Reorged: back to where it was
//
// An intent is identified by (client, signer or pool, idempotency key): whoever asks
// derives the same id, and so meets the same stream.
//
// Nothing is signed for an intent before its Assigned stands in its stream: so a cancel
// that finds none ends it at once, and an assignment that comes after is refused. An
// Attempted of the lane is recorded here before its bytes are handed to anybody.
//
// Invariants of a [State], which every sequence of commands keeps:
//
//  1. What was requested never changes: the same request again adds nothing, another
//     one is refused.
//  2. There is one place at a time. The next is given only after evidence that no
//     attempt at the one before is in the chain or can ever be: it was released
//     unsigned, by the holder of the lane that the intent has heard of last, a rival is
//     final there, or the no-op that it gave way to, or all its attempts lapsed.
//  3. An end stands until a Reorged takes it back, so at most one Completed stands. An
//     end without a block is for ever.
//  4. While an end stands there are only Announced, and Reorged. A no-op is signed only
//     for what is to end without effect, or gives way.
//  5. Sequences rise by one. An announcement is of a new fork exactly if what was
//     announced before is not how its list begins, and then bears the whole list.
//  6. Deciding the same command twice adds nothing the second time.
package intent

import (
	"fmt"
	"slices"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Status is what the client is told.
type Status string

const (
	StatusAbsent    Status = "" // no such intent
	StatusWaiting   Status = "waiting"
	StatusAssigned  Status = "assigned"
	StatusSubmitted Status = "submitted"
	StatusCanceling Status = "canceling"
	StatusMined     Status = "mined"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusCanceled  Status = "canceled"
)

// Statuses lists every status an intent can have, in the order of its life.
func Statuses() []Status {
	return []Status{
		StatusWaiting, StatusAssigned, StatusSubmitted, StatusCanceling, StatusMined,
		StatusCompleted, StatusFailed, StatusCanceled,
	}
}

// State is what the events of one intent add up to. The zero State is an intent that
// does not exist.
type State struct {
	Requested Requested
	// Sequence is that of the last fact the client was told of.
	Sequence uint64
	// Assignment is how many there were, and Place the last one's, nil when it ended.
	Assignment int
	Place      *Place
	Token      uint64 // of the lane's holder, as far as the intent has heard
	Attempts   []Attempted
	// Stop is why it is to end without effect; its Reason is empty while it is not.
	Stop CancelRequested
	// Floor is the least that the next attempt pays for a unit of gas.
	Floor Amount
	// SpeedUps is how often the client has raised Floor.
	SpeedUps int `json:",omitempty"`
	// Yield is the assignment whose nonce an operator wants back; 0 is none.
	Yield int `json:",omitempty"`
	// GaveWay are the assignments at which a no-op was to take the nonce, rising.
	GaveWay []int `json:",omitempty"`
	// Mined is the attempt that Receipt is of, the last one announced. Told are the
	// confirmations announced.
	Mined   chain.Hash
	Receipt *chain.Receipt
	Told    []chain.Block
	End     *End
}

// End is how it came out.
type End struct {
	Status    Status // completed, failed or canceled
	Reason    Reason // of a failed one; of a completed one, why it should not have been
	Detail    string
	Hash      chain.Hash  // zero when nothing was needed
	Block     chain.Block // that holds it
	Announced uint64      // its sequence
}

// Status is what the client is told.
func (s State) Status() Status {
	switch {
	case s.Requested.ID.IsZero():
		return StatusAbsent
	case s.End != nil:
		return s.End.Status
	case s.Landed():
		return StatusMined
	case s.Stop.Reason != "":
		return StatusCanceling
	case s.live():
		return StatusSubmitted
	case s.Place != nil:
		return StatusAssigned
	}
	return StatusWaiting
}

// Landed reports whether a block holds an attempt that does what is wanted, be it that it
// reverted there. The no-op of an intent that is to end is none: who has asked for a payment
// and its cancel must not take that for the payment.
func (s State) Landed() bool {
	made, _ := s.attempt(s.Mined)
	return s.Receipt != nil && made.Kind != NoOp
}

// Yields reports whether the intent is to give its nonce back.
func (s State) Yields() bool { return s.Place != nil && s.Yield == s.Assignment }

// GivesWay reports whether a no-op is to take the nonce, and the intent to get another.
func (s State) GivesWay() bool {
	return s.Stop.Reason == "" && s.Place != nil && slices.Contains(s.GaveWay, s.Assignment)
}

// ToNoOp reports whether a no-op is to take the nonce, whatever becomes of the intent.
func (s State) ToNoOp() bool { return s.Stop.Reason != "" || s.GivesWay() }

// LeastSpeedUp is the least fee that the next speed-up can ask for: [RaiseMin] percent
// above Floor. 0 is any fee.
func (s State) LeastSpeedUp() Amount {
	if s.Floor.IsZero() {
		return s.Floor
	}
	below := s.Floor.Minus(NewAmount(1)).Int()
	raise := chain.AmountOf(below.Div(below, uint256.NewInt(100/RaiseMin))).Plus(NewAmount(1)) // rounded up
	return s.Floor.Plus(raise)
}

// live reports whether an attempt at the place may be in the chain, now or one day.
func (s State) live() bool {
	last := len(s.Attempts) - 1
	return s.Place != nil && last >= 0 && s.Attempts[last].Assignment == s.Assignment
}

func (s State) attempt(hash chain.Hash) (Attempted, bool) {
	i := slices.IndexFunc(s.Attempts, func(a Attempted) bool { return a.Hash == hash })
	if i < 0 {
		return Attempted{}, false
	}
	return s.Attempts[i], true
}

// Decide answers a command with the facts it adds: none if it adds nothing, an
// [event.Refusal] if it may not be granted.
func (s State) Decide(c Command) ([]Event, error) {
	if c, ok := c.(Create); ok {
		return s.create(c)
	}
	if s.Requested.ID.IsZero() {
		return nil, ErrUnknown
	}
	switch c := c.(type) {
	case Assign:
		return s.assign(c)
	case Requeue:
		return s.requeue(c)
	case Attempt:
		return s.attempted(c)
	case Announce:
		return s.announce(c)
	case LoseBlock:
		return s.loseBlock(c)
	case Cancel:
		return s.cancel(c)
	case Expire:
		return s.expire(c)
	case Fail:
		return s.fail(c)
	case SpeedUp:
		return s.speedUp(c)
	case Yield:
		return s.yield(c)
	case GiveWay:
		return s.giveWay(c)
	}
	panic(fmt.Sprintf("intent: unknown command %T", c))
}

// Evolve adds one fact. It cannot fail: what is recorded has happened.
func (s State) Evolve(e Event) State {
	s.Sequence = max(s.Sequence, SequenceOf(e))
	switch e := e.(type) {
	case Requested:
		return State{Requested: e}
	case Assigned:
		s.Assignment, s.Place, s.Token = e.Assignment, &e.Place, e.Token
	case TakenOver:
		s.Token = e.Token
	case Requeued:
		s.Place = nil
	case Attempted:
		s.Attempts = append(slices.Clip(s.Attempts), e)
	case CancelRequested:
		s.Stop = e
	case SpeedUpRequested:
		s.Floor, s.SpeedUps = e.Fee, s.SpeedUps+1
	case YieldRequested:
		s.Yield = e.Assignment
	case GiveWayRequested:
		s.GaveWay = append(slices.Clip(s.GaveWay), e.Assignment)
	case Announced:
		switch {
		case e.Kind == AboutReceipt:
			s.Mined, s.Receipt = e.Hash, e.Receipt
		case e.NewFork:
			s.Told = slices.Clone(e.Confirmations)
		default:
			s.Told = append(slices.Clip(s.Told), e.Confirmations...)
		}
	case Reorged:
		s.End = nil
	case Completed:
		s.End = &End{StatusCompleted, e.Despite, "", e.Hash, e.Block, e.Sequence}
	case Failed:
		s.End = &End{StatusFailed, e.Reason, e.Detail, e.Hash, e.Block, e.Sequence}
	case Canceled:
		s.End = &End{StatusCanceled, "", e.Detail, e.Hash, e.Block, e.Sequence}
	default:
		panic(fmt.Sprintf("intent: unknown event %T", e))
	}
	return s
}

// SequenceOf is the place of a fact among those that the client is told of; 0 when it
// is not told.
func SequenceOf(e Event) uint64 {
	switch e := e.(type) {
	case Assigned:
		return e.Sequence
	case Requeued:
		return e.Sequence
	case Attempted:
		return e.Sequence
	case Announced:
		return e.Sequence
	case Completed:
		return e.Sequence
	case Failed:
		return e.Sequence
	case Canceled:
		return e.Sequence
	}
	return 0
}

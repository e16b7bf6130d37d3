// Package intent implements a client's request for calls on a chain, before key, nonce and fee
// are chosen.
//
//	Requested → waiting ⇄ assigned → submitted → mined → completed
//	               │         │           │          └──→ failed (reverted: never tried again)
//	               │         └─ canceling (a cancel, the deadline, a refusal: a no-op takes the nonce)
//	               │                └──→ canceled | failed when the no-op is final;
//	               │                     or mined and completed all the same, marked
//	               └──→ canceled | failed (nothing is signed: at once)
//	submitted, and gives way: a no-op takes the nonce; when that is final, back to waiting
//	completed, failed, canceled by a block that leaves the chain → Reorged: back to the state before
//
// An intent is identified by (client, signer or pool, idempotency key). Every requester derives
// the same id, and so reaches the same stream.
//
// Nothing is signed for an intent before its Assigned is in its stream. So a cancel that finds no
// Assigned ends the intent at once, and a later assignment is refused. An Attempted of the lane
// is recorded here before its bytes are sent to any node.
//
// Invariants of a [State] under every sequence of commands:
//
//  1. The request never changes: the same request again adds nothing, another request is refused.
//  2. An intent has at most one place. It gets the next place only after evidence that no attempt at
//     the place before is in the chain or can ever be. The evidence is one of: the place was
//     released unsigned by the last lane holder that the intent knows; a rival is final there; the
//     no-op that it gave way to is final there; all its attempts lapsed.
//  3. An end stays until a Reorged withdraws it, so at most one Completed is in force. An end
//     without a block is permanent.
//  4. While an end is in force, only Announced and Reorged are recorded. A no-op is signed only for
//     an intent that is to end without effect, or gives way.
//  5. Sequences rise by one. NewFork is set exactly when the confirmations announced before are not
//     a prefix of the list, and then the announcement contains the whole list.
//  6. Deciding the same command twice adds no event the second time.
package intent

import (
	"fmt"
	"slices"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Status is the intent's status as reported to its client.
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

// Statuses returns every status of an existing intent, in the order of its life.
func Statuses() []Status {
	return []Status{
		StatusWaiting, StatusAssigned, StatusSubmitted, StatusCanceling, StatusMined,
		StatusCompleted, StatusFailed, StatusCanceled,
	}
}

// State is the result of one intent's events. The zero State is an intent that does not exist.
type State struct {
	Requested Requested
	// Sequence is the sequence of the last event reported to the client.
	Sequence uint64
	// Assignment is the number of assignments. Place is the last one's place, nil once it ended.
	Assignment int
	Place      *Place
	Token      uint64 // of the lane's holder, as far as the intent knows
	Attempts   []Attempted
	// Stop is why the intent is to end without effect; its Reason is empty while it is not.
	Stop CancelRequested
	// Floor is the least fee per unit of gas for the next attempt.
	Floor Amount
	// SpeedUps counts how often the client has raised Floor.
	SpeedUps int `json:",omitempty"`
	// Yield is the assignment whose nonce an operator wants released; 0: none.
	Yield int `json:",omitempty"`
	// GaveWay are the assignments at which a no-op was to take the nonce, in rising order.
	GaveWay []int `json:",omitempty"`
	// Mined is the attempt of Receipt, both from the last announcement. Told are the announced
	// confirmations.
	Mined   chain.Hash
	Receipt *chain.Receipt
	Told    []chain.Block
	End     *End
}

// End is the result of an intent.
type End struct {
	Status    Status // completed, failed or canceled
	Reason    Reason // of a failed intent; of a completed one, why it should have been stopped
	Detail    string
	Hash      chain.Hash  // zero if no transaction ended it
	Block     chain.Block // the block that contains Hash
	Announced uint64      // sequence of the end event
}

// Status returns the status as reported to the client.
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

// Landed reports whether a block contains an attempt of the intent's calls, reverted or not. A
// no-op does not count: a client that has canceled its payment must not take the no-op for the
// payment.
func (s State) Landed() bool {
	made, _ := s.attempt(s.Mined)
	return s.Receipt != nil && made.Kind != NoOp
}

// Sent are the hashes of the attempts at the intent's present place that carry out its calls.
func (s State) Sent() (hashes []chain.Hash) {
	for _, a := range s.Attempts {
		if s.Place != nil && a.Assignment == s.Assignment && a.Kind != NoOp {
			hashes = append(hashes, a.Hash)
		}
	}
	return hashes
}

// Yields reports whether the intent is to release its nonce.
func (s State) Yields() bool { return s.Place != nil && s.Yield == s.Assignment }

// GivesWay reports whether a no-op is to take the nonce while the intent waits for another.
func (s State) GivesWay() bool {
	return s.Stop.Reason == "" && s.Place != nil && slices.Contains(s.GaveWay, s.Assignment)
}

// ToNoOp reports whether a no-op is to take the nonce, because the intent stops or gives way.
func (s State) ToNoOp() bool { return s.Stop.Reason != "" || s.GivesWay() }

// LeastSpeedUp returns the least fee for the next speed-up: [RaiseMin] percent above Floor,
// rounded up. 0: any fee.
func (s State) LeastSpeedUp() Amount {
	if s.Floor.IsZero() {
		return s.Floor
	}
	below := s.Floor.Minus(NewAmount(1)).Int()
	raise := chain.AmountOf(below.Div(below, uint256.NewInt(100/RaiseMin))).Plus(NewAmount(1)) // rounded up
	return s.Floor.Plus(raise)
}

// live reports whether an attempt at the place is, or may ever be, in the chain.
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

// Decide returns the events that a command adds: none if it changes nothing, an [eventlog.Refusal]
// if it is not allowed.
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

// Evolve applies one event. It cannot fail, because a recorded event has happened.
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

// SequenceOf returns an event's number among the events reported to the client; 0 if it is not
// reported.
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

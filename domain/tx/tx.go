// Package tx is the life of one signed transaction.
//
//	Accepted → queued → broadcasting ⇄ retry_scheduled
//	                        │   the head says so: announced, sending stops
//	                        ├──→ executed ───────┐
//	                        ├──→ stale_by_nonce ─┤── its block is final ──→ sealed by Finalized
//	                        ├──→ expired ────────┘
//	                        │        └─ Reorged: back to broadcasting
//	                        ├──→ invalid            (a permanent refusal: sent no more; mined all the same → executed)
//	                        └──→ canceled_locally   (mined all the same → executed, marked)
//
// Invariants of a [State], which every sequence of commands keeps:
//
//  1. A verdict (executed, stale_by_nonce, expired) and its block are set together.
//  2. Only a verdict is sealed, and a sealed verdict never changes: the chain's
//     contradiction is recorded as FinalityViolated, after which nothing is.
//  3. Attempts only grow, and the history of attempts is bounded: an outcome is
//     recorded when first met, and again when the attempts have doubled since.
//  4. Bytes are erased only when they will not be sent again.
//  5. Deciding the same command twice adds nothing the second time.
package tx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// State is what the events of one transaction add up to. The zero State is a
// transaction that does not exist.
type State struct {
	Accepted Accepted
	Status   Status
	// Resubmitters are the other clients that submitted the same bytes.
	Resubmitters []string `json:",omitempty"`
	// Attempt is the last recorded broadcast attempt.
	Attempt int
	// Recorded maps an outcome to the attempt at which it was last recorded.
	Recorded map[string]int
	// Handed means that an endpoint may have had the bytes: one took them, or
	// its answer was lost.
	Handed bool
	// Verdict is executed, stale_by_nonce or expired, or absent while there is none.
	Verdict Status
	Block   chain.Block    // that the verdict rests on
	Receipt *chain.Receipt // of an executed transaction
	// Sealed: the verdict's block is final. Violated: the chain contradicted that.
	Sealed, Violated bool
	// Doubt is why the chain does not confirm the claimed group, Doubts how often
	// that has been recorded, and Confirmed the block at which it did.
	Doubt     string       `json:",omitempty"`
	Doubts    int          `json:",omitempty"`
	Confirmed *chain.Block `json:",omitempty"`
	// Canceled by its owner and Refused by every node stay set when the chain
	// executes the transaction all the same.
	Canceled, Refused bool
	Erased, Retired   bool
}

// Settled reports whether nothing more is to be done for the transaction: its
// verdict is sealed, a violation froze it, or its bytes are invalid and no node can
// have them.
func (s State) Settled() bool {
	return s.Sealed || s.Violated || s.Status == StatusInvalid && !s.Handed
}

// Sendable reports whether the bytes should still be sent.
func (s State) Sendable() bool {
	return s.Status == StatusQueued || s.Status == StatusBroadcasting || s.Status == StatusRetry
}

// Decide answers a command with the facts it adds: none if it adds nothing, an
// [event.Refusal] if it may not be granted.
func (s State) Decide(c Command) ([]Event, error) {
	if c, ok := c.(Accept); ok {
		return s.accept(c)
	}
	if s.Status == StatusAbsent {
		return nil, ErrUnknown
	}
	if s.Violated {
		return nil, nil // an operator's matter now
	}
	switch c := c.(type) {
	case Report:
		return s.report(c)
	case SeeReceipt:
		return s.seeReceipt(c)
	case SeeNonce:
		return s.seeNonce(c)
	case SeeTime:
		return s.seeTime(c)
	case LoseBlock:
		return s.loseBlock(c)
	case Finalize:
		return s.finalize(c)
	case Cancel:
		return s.cancel(c)
	case DoubtGroup:
		return s.doubtGroup(c)
	case ConfirmGroup:
		return s.confirmGroup(c)
	case Erase:
		return s.erase(c)
	case Retire:
		return s.retire(c)
	}
	panic(fmt.Sprintf("tx: unknown command %T", c))
}

// unwanted reports whether the bytes will not be sent again, whatever the chain does.
func (s State) unwanted() bool { return s.Canceled || s.Refused }

// Evolve adds one fact. It cannot fail: what is recorded has happened.
func (s State) Evolve(e Event) State {
	switch e := e.(type) {
	case Accepted:
		return State{Accepted: e, Status: StatusQueued}
	case Resubmitted:
		s.Resubmitters = append(slices.Clip(s.Resubmitters), e.Client)
	case Broadcast:
		s = s.attempted(e.Attempt, Summarise(e.Answers, false))
		s.Handed = true
		if !s.Canceled {
			s.Status = StatusBroadcasting
		}
	case Rejected:
		s = s.attempted(e.Attempt, Outcome{Class: e.Class, Cause: e.Cause, Message: e.Reason})
		s.Handed = s.Handed || e.Class == Unknown
		switch {
		case e.Permanent:
			s.Status, s.Refused = StatusInvalid, true
		case !s.Canceled:
			s.Status = StatusRetry
		}
	case Mined:
		s.Verdict, s.Status, s.Block, s.Receipt = StatusExecuted, StatusExecuted, e.Receipt.Block, &e.Receipt
	case StaleByNonce:
		s = s.rest(StatusStale, e.Block)
	case Expired:
		s = s.rest(StatusExpired, e.Block)
	case Reorged:
		s.Verdict, s.Block, s.Receipt, s.Status = StatusAbsent, chain.Block{}, nil, StatusBroadcasting
		switch {
		case s.Canceled:
			s.Status = StatusCanceled
		case s.Refused:
			s.Status = StatusInvalid
		}
	case Finalized:
		s.Sealed = true
	case FinalityViolated:
		s.Violated = true
	case CanceledLocally:
		s.Canceled = true
		if s.Verdict == StatusAbsent {
			s.Status = StatusCanceled
		}
	case GroupDoubted:
		s.Doubt = e.Reason
		s.Doubts++
	case GroupConfirmed:
		s.Doubt, s.Confirmed = "", &e.Block
	case PayloadErased:
		s.Erased = true
	case Retired:
		s.Retired = true
	default:
		panic(fmt.Sprintf("tx: unknown event %T", e))
	}
	return s
}

// attempted notes that an outcome was recorded at an attempt.
func (s State) attempted(n int, o Outcome) State {
	s.Attempt = max(s.Attempt, n)
	s.Recorded = maps.Clone(s.Recorded)
	if s.Recorded == nil {
		s.Recorded = map[string]int{}
	}
	s.Recorded[s.key(o)] = n
	return s
}

// maxOutcomes bounds how many outcomes are told apart; all beyond count as one.
const maxOutcomes = 32

func (s State) key(o Outcome) string {
	key := o.Key()
	if _, met := s.Recorded[key]; !met && len(s.Recorded) >= maxOutcomes {
		return "any other"
	}
	return key
}

// rest lets a verdict without a receipt rest on a block. A canceled transaction
// keeps telling its owner that it is canceled, an invalid one that it is invalid.
func (s State) rest(verdict Status, b chain.Block) State {
	s.Verdict, s.Block, s.Receipt = verdict, b, nil
	if !s.unwanted() {
		s.Status = verdict
	}
	return s
}

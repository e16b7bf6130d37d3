// Package tx implements the life of one signed transaction. It decides, and does no IO; times are in
// commands. It imports domain/chain, domain/fair and eventlog.
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
// Invariants of a [State] under every sequence of commands:
//
//  1. A verdict (executed, stale_by_nonce, expired) and its block are set together.
//  2. Only a verdict is sealed, and a sealed verdict never changes. A contradiction by the
//     chain is recorded as FinalityViolated; no event follows it.
//  3. Attempts only grow, and their history is bounded: an outcome is recorded when first
//     seen, and again when the number of attempts has doubled since.
//  4. Bytes are erased only when they will not be sent again.
//  5. Deciding the same command twice adds no event the second time.
package tx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// State is the result of one transaction's events. The zero State is a transaction that does not
// exist.
type State struct {
	Accepted Accepted
	Status   Status
	// Resubmitters are the other clients that submitted the same bytes.
	Resubmitters []string `json:",omitempty"`
	// Attempt is the last recorded broadcast attempt.
	Attempt int
	// Recorded maps an outcome to the attempt at which it was last recorded.
	Recorded map[string]int
	// Handed means that an endpoint may have the bytes: it accepted them, or its answer was lost.
	Handed bool
	// Verdict is executed, stale_by_nonce or expired; empty while there is none.
	Verdict Status
	Block   chain.Block    // the verdict's block
	Receipt *chain.Receipt // of an executed transaction
	// Sealed: the verdict's block is final. Violated: the chain contradicted the sealed verdict.
	Sealed, Violated bool
	// Doubt is the chain's reason against the claimed group, Doubts the number of recorded
	// doubts, Confirmed the block at which the chain confirmed the access key.
	Doubt     string       `json:",omitempty"`
	Doubts    int          `json:",omitempty"`
	Confirmed *chain.Block `json:",omitempty"`
	// Canceled (by its owner) and Refused (by every node) stay set if the chain executes the
	// transaction later.
	Canceled, Refused bool
	Erased, Retired   bool
}

// Settled reports whether no work is left for the transaction: its verdict is sealed, a finality
// violation froze it, or its bytes are invalid and no node can have them.
func (s State) Settled() bool {
	return s.Sealed || s.Violated || s.Status == StatusInvalid && !s.Handed
}

// Sendable reports whether the bytes should still be sent.
func (s State) Sendable() bool {
	return s.Status == StatusQueued || s.Status == StatusBroadcasting || s.Status == StatusRetry
}

// Tried reports whether a node has dealt with the bytes: an attempt ended otherwise than with a
// refusal for the rate of calls, which a node or our own budget gives.
func (s State) Tried() bool {
	for key := range s.Recorded {
		if key != (Outcome{Class: Retry, Cause: RateLimited}).Key() {
			return true
		}
	}
	return false
}

// Taken reports whether a node has accepted the bytes, or the chain has contained them. Unlike Handed
// it is false for a lost answer.
func (s State) Taken() bool {
	_, recorded := s.Recorded[Outcome{Class: Taken}.Key()]
	return recorded || s.Status == StatusBroadcasting || s.Verdict == StatusExecuted
}

// Decide returns the events that a command adds: none if it changes nothing, an [eventlog.Refusal]
// if it is not allowed.
func (s State) Decide(c Command) ([]Event, error) {
	if c, ok := c.(Accept); ok {
		return s.accept(c)
	}
	if s.Status == StatusAbsent {
		return nil, ErrUnknown
	}
	if s.Violated {
		return nil, nil // left to an operator
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

// unwanted reports whether the bytes are never sent again, even after a reorg.
func (s State) unwanted() bool { return s.Canceled || s.Refused }

// Evolve applies one event. It cannot fail, because a recorded event has happened.
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

// attempted records that an outcome was recorded at attempt n.
func (s State) attempted(n int, o Outcome) State {
	s.Attempt = max(s.Attempt, n)
	s.Recorded = maps.Clone(s.Recorded)
	if s.Recorded == nil {
		s.Recorded = map[string]int{}
	}
	s.Recorded[s.key(o)] = n
	return s
}

// maxOutcomes bounds the number of distinct outcome keys; all further outcomes share one key.
const maxOutcomes = 32

func (s State) key(o Outcome) string {
	key := o.Key()
	if _, met := s.Recorded[key]; !met && len(s.Recorded) >= maxOutcomes {
		return "any other"
	}
	return key
}

// rest sets a verdict without a receipt, and its block. The reported status of a canceled or
// invalid transaction stays the same.
func (s State) rest(verdict Status, b chain.Block) State {
	s.Verdict, s.Block, s.Receipt = verdict, b, nil
	if !s.unwanted() {
		s.Status = verdict
	}
	return s
}

// Package signer manages a signer: an account on one chain whose key the relay uses. It decides
// which intents the signer accepts, and whether its key may sign.
//
//	            ┌── Paused ───────────────→ paused ──────────────┐
//	            ├── Draining → draining ── Drained → drained ────┤
//	Registered → serving ←──────────────── Resumed ──────────────┤
//	            ├── Failed, Failed … Disabled → disabled ────────┘
//	            └── BalanceLow → low ── BalanceRestored → serving
//
// An operator pauses, drains and resumes a signer. A low balance stops it and a restored one
// starts it again, both automatically. Consecutive failures disable it until an operator resumes
// it. The three are independent: a signer that is paused and low serves once both have ended.
//
//	             accepts intents   signs for assigned intents
//	serving            yes              yes
//	low, draining      no               yes (bumps and no-ops, too)
//	paused, drained    no               no
//	disabled           no               no
//
// Transactions signed before are sent and watched in all states, because that needs no key.
//
// The threshold for a low balance is learned: the cost of an unaffordable transaction becomes the
// threshold, until an operator changes it. To serve again the signer needs a tenth more, so that
// a balance at the threshold does not toggle it.
//
// A signer is identified by its address, which is derived from its key at registration. This
// package and its events contain no key.
//
// Only changes are recorded: neither a balance on the expected side of the threshold, nor a
// success after a success.
//
// Invariants of a [State] under every sequence of commands:
//
//  1. Nothing is recorded about a signer before it is registered.
//  2. Only an operator pauses, drains and resumes, with a name and a reason. Only a draining signer
//     becomes drained.
//  3. BalanceLow and BalanceRestored alternate: the first below the threshold, the second at least a
//     tenth above it.
//  4. The threshold rises when learned, and falls only by an operator.
//  5. Disabled follows too many consecutive failures, or a wrong signature. No failure is recorded
//     after it, and only Resumed ends it.
//  6. A state is bounded: at most [FailuresMax] failures, [PoolsMax] pools and [TargetsMax] targets.
//  7. Deciding the same command twice adds no event the second time.
package signer

import (
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Status is a signer's state in one word. If several apply, it is the hardest to end.
type Status string

const (
	StatusUnknown  Status = "" // it was never registered
	StatusServing  Status = "serving"
	StatusLow      Status = "low"
	StatusDraining Status = "draining"
	StatusDrained  Status = "drained"
	StatusPaused   Status = "paused"
	StatusDisabled Status = "disabled"
)

// Statuses returns every status of a registered signer.
func Statuses() []Status {
	return []Status{StatusServing, StatusLow, StatusDraining, StatusDrained, StatusPaused, StatusDisabled}
}

// State is the result of one signer's events. The zero State is a signer that was never
// registered.
type State struct {
	Known   bool
	Pools   []string // sorted
	Targets chain.Targets
	Stance  Stance
	// Threshold is the minimum balance for serving. Low means that the balance was below it, and
	// has not been sufficient since.
	Threshold chain.Amount
	Low       bool
	// Failures are the consecutive failures. Disabled means that there were too many.
	Failures []Failure
	Disabled bool
	// Last is the last failure ever recorded, also after it recovered; nil: none.
	Last *Failed
}

// Stance is the status set by an operator.
type Stance struct {
	Status Status // serving, paused, draining or drained
	Actor  string
	Reason string
	Since  time.Time
}

// Failure is one recorded failure.
type Failure struct {
	Report eventlog.ID
	Kind   FailureKind
}

// Status returns the signer's state in one word.
func (s State) Status() Status {
	switch {
	case !s.Known:
		return StatusUnknown
	case s.Disabled:
		return StatusDisabled
	case s.Stance.Status != StatusServing:
		return s.Stance.Status
	case s.Low:
		return StatusLow
	}
	return StatusServing
}

// Takes reports whether it may get new intents.
func (s State) Takes() bool { return s.Status() == StatusServing }

// Signs reports whether its key may sign attempts at nonces that it has, bumps and no-ops
// included.
func (s State) Signs() bool {
	status := s.Status()
	return status == StatusServing || status == StatusLow || status == StatusDraining
}

// Decide returns the events that a command adds: none if it changes nothing, an [eventlog.Refusal]
// if it is not allowed.
func (s State) Decide(c Command) ([]Event, error) {
	if _, first := c.(Register); !first && !s.Known {
		return nil, ErrUnknown
	}
	switch c := c.(type) {
	case Register:
		return s.register(c)
	case Pause:
		return s.pause(c)
	case Drain:
		return s.drain(c)
	case Finish:
		return s.finish(c)
	case Resume:
		return s.resume(c)
	case SetThreshold:
		return s.setThreshold(c)
	case SeeBalance:
		return s.seeBalance(c)
	case LackFunds:
		return s.lackFunds(c)
	case Fail:
		return s.fail(c)
	case Succeed:
		return s.succeed(c)
	}
	panic(fmt.Sprintf("signer: unknown command %T", c))
}

// Evolve applies one event. It cannot fail, because a recorded event has happened.
func (s State) Evolve(e Event) State {
	switch e := e.(type) {
	case Registered:
		if !s.Known {
			s.Known, s.Stance = true, Stance{StatusServing, e.Actor, "", e.At}
		}
		s.Pools, s.Targets = e.Pools, e.Targets
	case Paused:
		s.Stance = Stance{StatusPaused, e.Actor, e.Reason, e.At}
	case Draining:
		s.Stance = Stance{StatusDraining, e.Actor, e.Reason, e.At}
	case Drained:
		s.Stance.Status, s.Stance.Since = StatusDrained, e.At
	case Resumed:
		s.Stance = Stance{StatusServing, e.Actor, e.Reason, e.At}
		if s.Disabled {
			s.Disabled, s.Failures = false, nil
		}
	case ThresholdSet:
		s.Threshold = e.Threshold
	case ThresholdLearned:
		s.Threshold = e.Threshold
	case BalanceLow:
		s.Low = true
	case BalanceRestored:
		s.Low = false
	case Failed:
		s.Failures, s.Last = append(slices.Clip(s.Failures), Failure{e.Report, e.Kind}), &e
	case Recovered:
		s.Failures = nil
	case Disabled:
		s.Disabled = true
	default:
		panic(fmt.Sprintf("signer: unknown event %T", e))
	}
	return s
}

// Package signer is an account that the relay has a key of, on one chain: what it is
// for, and whether anything is to be signed with it.
//
//	            ┌── Paused ───────────────→ paused ──────────────┐
//	            ├── Draining → draining ── Drained → drained ────┤
//	Registered → serving ←──────────────── Resumed ──────────────┤
//	            ├── Failed, Failed … Disabled → disabled ────────┘
//	            └── BalanceLow → low ── BalanceRestored → serving
//
// An operator pauses a signer, drains it and lets it serve again. A balance that is too
// low stops it by itself, and lets it go on by itself. Failures in a row disable it
// until an operator acts. The three are apart: whoever is paused and low serves when
// both have ended.
//
//	             takes intents   signs for what it has
//	serving            yes              yes
//	low, draining      no               yes (bumps and no-ops, too)
//	paused, drained    no               no
//	disabled           no               no
//
// What was signed before is sent again and watched in any case: that needs no key.
//
// Which balance is too low is learned: what an account could not pay is the threshold
// from then on, until an operator says otherwise. To serve again it needs a tenth more,
// so that a balance at the threshold does not switch it on and off.
//
// A signer is known by its address, which is derived from its key by whoever registers
// it. There is no key in this package, and none in its events.
//
// What is recorded is what changes something: a balance that was seen and is as it
// should be is not, nor is a success that follows another.
//
// Invariants of a [State], which every sequence of commands keeps:
//
//  1. Nothing is recorded of a signer before it is registered.
//  2. Only an operator pauses, drains and resumes, with a name and a reason; what is
//     draining becomes drained, and nothing else does.
//  3. BalanceLow and BalanceRestored take turns: the first below the threshold, the
//     second a tenth above it or more.
//  4. The threshold rises by what was learned, and falls by an operator alone.
//  5. Disabled follows as many failures in a row as are too many, or a wrong
//     signature. No failure is recorded after it, and only Resumed ends it.
//  6. A state does not grow: it has at most [FailuresMax] failures, [PoolsMax] pools
//     and [TargetsMax] targets.
//  7. Deciding the same command twice adds nothing the second time.
package signer

import (
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Status is a signer's condition in one word. Of several, it is the one that takes
// most to end.
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

// Statuses lists every status that a registered signer can have.
func Statuses() []Status {
	return []Status{StatusServing, StatusLow, StatusDraining, StatusDrained, StatusPaused, StatusDisabled}
}

// State is what the events of one signer add up to. The zero State is one that nobody
// has registered.
type State struct {
	Known   bool
	Pools   []string // sorted
	Targets chain.Targets
	Stance  Stance
	// Threshold is the least balance that it serves with, and Low that its balance was
	// below it, and has not been enough since.
	Threshold chain.Amount
	Low       bool
	// Failures are those in a row, and Disabled that they were too many.
	Failures []Failure
	Disabled bool
}

// Stance is what an operator wants of a signer.
type Stance struct {
	Status Status // serving, paused, draining or drained
	Actor  string
	Reason string
	Since  time.Time
}

// Failure is one time that it did not do what it is for.
type Failure struct {
	Report event.ID
	Kind   FailureKind
}

// Status is the signer's condition in one word.
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

// Takes reports whether it may be given intents.
func (s State) Takes() bool { return s.Status() == StatusServing }

// Signs reports whether anything may be signed with its key: attempts at nonces that
// it has, bumps and no-ops among them.
func (s State) Signs() bool {
	status := s.Status()
	return status == StatusServing || status == StatusLow || status == StatusDraining
}

// Decide answers a command with the facts it adds: none if it adds nothing, an
// [event.Refusal] if it may not be granted.
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

// Evolve adds one fact. It cannot fail: what is recorded has happened.
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
		s.Failures = append(slices.Clip(s.Failures), Failure{e.Report, e.Kind})
	case Recovered:
		s.Failures = nil
	case Disabled:
		s.Disabled = true
	default:
		panic(fmt.Sprintf("signer: unknown event %T", e))
	}
	return s
}

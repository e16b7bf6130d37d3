// Package lane manages the nonces of one signer on one chain, under one nonce key. They are
// reserved once, in order, by one holder at a time.
//
//	Opened (a holder, its token) → Advanced (where the chain is) → …
//
//	           ┌── Released ──┐
//	           ↓              │
//	free ── Reserved ──→ held by an intent ── Attempted, Attempted … ──→ Landed ── and final ──→ closed
//	  │                                            │       ↑               │
//	  └── Filled: a no-op will use it ── Attempted ┤       └── Unlanded ───┘
//	                                               └── Lost: another transaction used it ──→ closed
//
// A nonce is taken back only while nothing is signed for it. After that, any of its attempts may
// land, even if endpoints report otherwise. So all of them are watched until the final chain has
// used the nonce, with one of them or with another transaction. A fee bump and a cancel are
// further attempts at the same nonce.
//
// The lane's holder has a fencing token, one more than the last. Every command carries it, and a
// command with another token is refused. So a stalled holder that resumes after another one
// opened the lane changes nothing. That depends on the log alone, not on leases.
//
// Invariants of a [State] under every sequence of commands:
//
//  1. Tokens rise by one, and every event carries the last holder's token.
//  2. A nonce is held by at most one intent, and an intent holds at most one nonce.
//  3. New nonces are contiguous from the cursor, which never goes back. It jumps ahead only by a
//     quorum of endpoints.
//  4. A nonce is released only if it has no attempt.
//  5. A nonce is closed once: it has at most one final landing, and no event follows.
//  6. Each replacement offers more than all attempts before, by the pools' minimum, except attempts
//     that were never delivered. After a no-op, only no-ops follow.
//  7. A state is as large as the set of open nonces: closed nonces are dropped.
//  8. Deciding the same command twice adds no event the second time.
//
// Because closed nonces are dropped, a lane cannot tell a served intent from an unknown one. So
// the lane's driver records an intent's result with the intent before it reports a final landing
// here. It reserves only for intents whose own stream shows that they need a nonce.
package lane

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Actor is the actor's name in the events of lanes.
const Actor = "relayer"

// State is the result of one lane's events. The zero State is a lane that was never opened.
type State struct {
	Holder string
	Token  Token
	// Known means that the lane's first nonce is known. Next is the cursor: the lowest nonce that
	// was never reserved.
	Known bool
	Next  uint64

	open    slots
	skipped skipped // nonces that the cursor jumped over and the final chain may not have used
}

// Decide returns the events that a command adds: none if it changes nothing, an [eventlog.Refusal]
// if it is not allowed.
func (s State) Decide(c Command) ([]Event, error) {
	_, opens := c.(Open)
	switch token := c.wish(); {
	case opens: // openFor checks the token
	case s.Token == 0:
		return nil, ErrUnknown
	case token < s.Token:
		return nil, ErrFenced.Because("token %d is older than %d, which %s holds", token, s.Token, s.Holder)
	case token > s.Token:
		return nil, ErrFenced.Because("token %d was never given: the last is %d", token, s.Token)
	}
	switch c := c.(type) {
	case Open:
		return s.openFor(c)
	case Advance:
		return s.advance(c)
	case Reserve:
		return s.reserve(c)
	case Release:
		return s.release(c)
	case Fill:
		return s.fill(c)
	case Attempt:
		return s.attempt(c)
	case Land:
		return s.land(c)
	case Unland:
		return s.unland(c)
	case Lose:
		return s.lose(c)
	case Reclaim:
		return s.reclaim(c)
	}
	panic(fmt.Sprintf("lane: unknown command %T", c))
}

// Evolve applies one event. It cannot fail, because a recorded event has happened.
func (s State) Evolve(e Event) State {
	switch e := e.(type) {
	case Opened:
		s.Holder, s.Token = e.Holder, e.Token
	case Advanced:
		s.skipped = s.skipped.with(Span{s.Next, e.Witness.Nonce})
		s.Known, s.Next = true, e.Witness.Nonce
	case Reserved:
		return s.reserved(e)
	case Released:
		s.open = s.open.with(Slot{Nonce: e.Nonce, Since: millis(e.At)})
	case Filled:
		s.open = s.open.with(Slot{Nonce: e.Nonce, Filled: true, Since: millis(e.At)})
	case Attempted:
		slot, _ := s.Slot(e.Nonce)
		slot.Nonce = e.Nonce
		slot.Attempts = append(slices.Clip(slot.Attempts), Made{e.Intent, e.Hash, e.Fee, millis(e.At)})
		s.open = s.open.with(slot)
	case Landed:
		return s.landed(e)
	case Unlanded:
		return s.unlanded(e)
	case Lost:
		return s.closed(e.Nonce, e.Witness.Nonce)
	case Reclaimed:
		return s.reclaimed(e)
	default:
		panic(fmt.Sprintf("lane: unknown event %T", e))
	}
	return s
}

// closed drops a nonce. The final chain has used all nonces below past, those jumped over
// included.
func (s State) closed(nonce, past uint64) State {
	s.open = s.open.without(nonce)
	s.skipped = s.skipped.without(Span{0, past})
	return s
}

// Slot returns a nonce that was reserved and is not closed.
func (s State) Slot(nonce uint64) (Slot, bool) {
	i, found := s.open.at(nonce)
	if !found {
		return Slot{}, false
	}
	return *s.open[i], true
}

// Held returns the nonce that an intent holds.
func (s State) Held(intent chain.IntentID) (Slot, bool) {
	i := slices.IndexFunc(s.open, func(slot *Slot) bool { return slot.Intent == intent })
	if i < 0 || intent.IsZero() {
		return Slot{}, false
	}
	return *s.open[i], true
}

// Open returns the number of slots: nonces reserved or free again, and not closed.
func (s State) Open() int { return len(s.open) }

// Slots yields the slots by rising nonce.
func (s State) Slots() iter.Seq[Slot] {
	return func(yield func(Slot) bool) {
		for _, slot := range s.open {
			if !yield(*slot) {
				return
			}
		}
	}
}

// InFlight counts the nonces that an intent holds or a no-op is to use up, and that are in no
// block. A landed nonce waits only for its block to be final.
func (s State) InFlight() int {
	n := 0
	for _, slot := range s.open {
		if !slot.IsFree() && slot.Landed == nil {
			n++
		}
	}
	return n
}

// Hole is a nonce without an attempt, below a nonce that has one. The higher nonce cannot land
// before the hole is used. Since lets the caller decide when to fill it.
type Hole struct {
	Nonce  uint64
	Intent chain.IntentID // the nonce's holder; zero: none
	Since  time.Time
}

// Holes returns the holes by rising nonce, without nonces for which a no-op is chosen.
func (s State) Holes() []Hole {
	top := len(s.open) - 1
	for top >= 0 && len(s.open[top].Attempts) == 0 {
		top--
	}
	var holes []Hole
	for _, slot := range s.open[:max(top, 0)] {
		if len(slot.Attempts) == 0 && !slot.Filled {
			holes = append(holes, Hole{slot.Nonce, slot.Intent, slot.Since})
		}
	}
	return holes
}

// Gap returns the jumped-over nonces from the chain's next nonce on: no later nonce lands before
// they are used. It is empty if next was not jumped over.
func (s State) Gap(next uint64) Span { return s.skipped.from(next) }

// Package lane is the nonces of one signer on one chain, under one nonce key. They
// are handed out once, in order, by one holder at a time.
//
//	Opened (a holder, its token) → Advanced (where the chain is) → …
//
//	           ┌── Released ──┐
//	           ↓              │
//	free ── Reserved ──→ held by an intent ── Attempted, Attempted … ──→ Landed ── and final ──→ closed
//	  │                                            │       ↑               │
//	  └── Filled: a no-op will use it ── Attempted ┤       └── Unlanded ───┘
//	                                               └── Lost: somebody else used it ──→ closed
//
// A nonce is taken back only while nothing was signed for it. From the first attempt
// on any of its attempts may land, whatever endpoints say, so all of them are watched
// until the final chain has used the nonce, for one of them or for somebody else's
// transaction. A fee bump and a cancel are further attempts at the same nonce.
//
// Whoever holds the lane got a token with it, one more than the last. Every command
// carries it, and none is taken with another one: a holder that was stopped and goes
// on after somebody else has opened the lane changes nothing any more. That rests on
// the log alone, whatever becomes of leases.
//
// Invariants of a [State], which every sequence of commands keeps:
//
//  1. Tokens rise by one, and every fact bears the token of the last holder.
//  2. A nonce is held by one intent at a time, and an intent holds one nonce.
//  3. New nonces are contiguous from the cursor, which never goes back; it jumps
//     ahead only on the word of as many endpoints as are needed.
//  4. A nonce is released only if it has no attempt.
//  5. A nonce is closed once: it lands for good at most once, and nothing follows.
//  6. Each replacement offers more than the attempts before, by what pools demand, save
//     those that delivery is said not to have. After a no-op, only no-ops follow.
//  7. A state is as large as what is open: closed nonces are forgotten.
//  8. Deciding the same command twice adds nothing the second time.
//
// As closed nonces are forgotten, a lane cannot tell an intent that it has served from
// one that it has never seen. So whoever drives it records with the intent what became
// of it before it says here that a landing is final; and reserves only for intents
// whose own stream says that they want a nonce.
package lane

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Actor names, in events, whoever works on lanes.
const Actor = "relayer"

// State is what the events of one lane add up to. The zero State is a lane that
// nobody has opened.
type State struct {
	Holder string
	Token  Token
	// Known means that the lane has learned where it begins, and Next is the cursor:
	// the next nonce that was never handed out.
	Known bool
	Next  uint64

	open    slots
	skipped skipped // that the cursor jumped over, and the final chain may not be past
}

// Decide answers a command with the facts it adds: none if it adds nothing, an
// [event.Refusal] if it may not be granted.
func (s State) Decide(c Command) ([]Event, error) {
	_, opens := c.(Open)
	switch token := c.wish(); {
	case opens: // with a token that nobody had
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

// Evolve adds one fact. It cannot fail: what is recorded has happened.
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

// closed forgets a nonce. The final chain is past all below the second one: what the
// cursor jumped over there is used.
func (s State) closed(nonce, past uint64) State {
	s.open = s.open.without(nonce)
	s.skipped = s.skipped.without(Span{0, past})
	return s
}

// Slot finds a nonce that was handed out and is not closed.
func (s State) Slot(nonce uint64) (Slot, bool) {
	i, found := s.open.at(nonce)
	if !found {
		return Slot{}, false
	}
	return *s.open[i], true
}

// Held finds the nonce that an intent holds.
func (s State) Held(intent chain.IntentID) (Slot, bool) {
	i := slices.IndexFunc(s.open, func(slot *Slot) bool { return slot.Intent == intent })
	if i < 0 || intent.IsZero() {
		return Slot{}, false
	}
	return *s.open[i], true
}

// Open is how many nonces are handed out, or free again, and not closed.
func (s State) Open() int { return len(s.open) }

// Slots yields them by rising nonce.
func (s State) Slots() iter.Seq[Slot] {
	return func(yield func(Slot) bool) {
		for _, slot := range s.open {
			if !yield(*slot) {
				return
			}
		}
	}
}

// InFlight is how many nonces an intent holds, or a no-op is to use up, and no block
// has used: what has landed waits for nothing but its block to be final.
func (s State) InFlight() int {
	n := 0
	for _, slot := range s.open {
		if !slot.IsFree() && slot.Landed == nil {
			n++
		}
	}
	return n
}

// Hole is a nonce without an attempt, below one that has one, which cannot land
// before it. Since when tells whoever has to decide whether it is to be filled.
type Hole struct {
	Nonce  uint64
	Intent chain.IntentID // that holds it; zero when nobody does
	Since  time.Time
}

// Holes lists them by rising nonce; not those for which a no-op has been chosen.
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

// Gap is the nonces from the one that the chain wants next, if the cursor had jumped
// over it: until they are used nothing above them lands. It is empty otherwise.
func (s State) Gap(next uint64) Span { return s.skipped.from(next) }

// Package group is a sender's transactions that share a nonce key, on one chain.
//
//	Joined, Joined, … → Canceled (those so far) → Joined (another) → …
//
// Invariants of a [State], which every sequence of commands keeps:
//
//  1. All members share one nonce key.
//  2. A hash is a member once, and for ever.
//  3. A cancel speaks of the members it finds. A member that was canceled stays
//     so; one that joins later is not.
//  4. An authority is recorded once, and reaches the members of that time only.
//  5. Deciding the same command twice adds nothing the second time.
//
// A group may have many thousands of members. Adding one costs a logarithm of
// them, and never the copy of all.
package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// State is what the events of one group add up to. The zero State is a group that
// does not exist.
type State struct {
	NonceKey chain.NonceKey
	// Members is how many have joined, and Canceled how many of them, the first
	// ones, are canceled.
	Members, Canceled int
	// Shown maps the digests of the authorities that were recorded to the members they
	// found. Typed ones are forgotten once a later cancel finds them expired.
	Shown map[chain.Hash]Shown
	roll  roll
}

// Shown is an authority that was recorded.
type Shown struct {
	Expires uint64 // Unix seconds; 0 never, for the form that signs the group's id
	Members int    // the first so many members are those it found
}

// Member is one transaction of a group.
type Member struct {
	Hash       chain.Hash
	Nonce      uint64
	EligibleAt uint64 // Unix seconds
	ExpiresAt  uint64 // Unix seconds, 0 never
	Ordinal    int    // its place in the order of joining, from 0
}

// Decide answers a command with the facts it adds: none if it adds nothing, an
// [event.Refusal] if it may not be granted.
func (s State) Decide(c Command) ([]Event, error) {
	if c, ok := c.(Join); ok {
		return s.join(c)
	}
	if s.Members == 0 {
		return nil, ErrUnknown
	}
	switch c := c.(type) {
	case Cancel:
		return s.cancel(c)
	}
	panic(fmt.Sprintf("group: unknown command %T", c))
}

// Evolve adds one fact. It cannot fail: what is recorded has happened.
func (s State) Evolve(e Event) State {
	switch e := e.(type) {
	case Joined:
		s.NonceKey = e.NonceKey
		s.roll = s.roll.with(Member{e.Hash, e.Nonce, e.EligibleAt, e.ExpiresAt, s.Members})
		s.Members++
	case Canceled:
		s.Canceled = e.Members
		var now uint64 // the other form forgets none: it comes at any time
		if e.By.Form == FormTyped {
			now = uint64(max(e.At.Unix(), 0))
		}
		s.Shown = s.shownAt(now)
		s.Shown[e.By.Digest] = Shown{Expires: e.By.Expires, Members: e.Members}
	default:
		panic(fmt.Sprintf("group: unknown event %T", e))
	}
	return s
}

// shownAt copies the authorities that have not expired at a time.
func (s State) shownAt(seconds uint64) map[chain.Hash]Shown {
	shown := map[chain.Hash]Shown{}
	maps.Copy(shown, s.Shown)
	maps.DeleteFunc(shown, func(_ chain.Hash, a Shown) bool { return a.Expires > 0 && a.Expires <= seconds })
	return shown
}

// Found returns the members that an authority found, in the order of joining; nil when it
// was not recorded.
func (s State) Found(by Authority) []Member { return s.List()[:s.Shown[by.Digest].Members] }

// Member finds a transaction of the group.
func (s State) Member(hash chain.Hash) (Member, bool) { return s.roll.find(hash) }

// IsCanceled reports whether a cancel found a member.
func (s State) IsCanceled(m Member) bool { return m.Ordinal < s.Canceled }

// List returns all members in the order of joining.
func (s State) List() []Member {
	all := slices.Concat(s.roll...)
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return all
}

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
//  4. A typed authority is recorded once.
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
	// Shown maps the digests of typed authorities to their expiry, until that has
	// passed by the time of a later cancel.
	Shown map[chain.Hash]uint64
	roll  roll
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
		if e.By.Form == FormTyped {
			s.Shown = s.shownAt(uint64(max(e.At.Unix(), 0)))
			s.Shown[e.By.Digest] = e.By.Expires
		}
	default:
		panic(fmt.Sprintf("group: unknown event %T", e))
	}
	return s
}

// shownAt copies the authorities that have not expired at a time.
func (s State) shownAt(seconds uint64) map[chain.Hash]uint64 {
	shown := map[chain.Hash]uint64{}
	maps.Copy(shown, s.Shown)
	maps.DeleteFunc(shown, func(_ chain.Hash, expires uint64) bool { return expires <= seconds })
	return shown
}

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

// Package group implements groups: a sender's transactions that share a nonce key on one chain.
//
//	Joined, Joined, … → Canceled (those so far) → Joined (another) → …
//
// Invariants of a [State] under every sequence of commands:
//
//  1. All members share one nonce key.
//  2. A hash joins once and stays a member.
//  3. A cancel applies to the present members, which stay canceled. It does not apply to members that
//     join later.
//  4. An authority is recorded once, and applies to the members at that time only.
//  5. Deciding the same command twice adds no event the second time.
//  6. No transaction joins a group that has [MembersMax] members.
//
// A group may have many thousands of members. Adding a member takes logarithmic time and never
// copies all members.
package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// State is the result of one group's events. The zero State is a group that does not exist.
type State struct {
	NonceKey chain.NonceKey
	// Members is the number of joined members; the first Canceled of them are canceled.
	Members, Canceled int
	// Shown maps the digest of each recorded authority to the authority. Typed ones are dropped
	// when a later cancel finds them expired.
	Shown map[chain.Hash]Shown
	roll  roll
}

// Shown is a recorded authority.
type Shown struct {
	Expires uint64 // Unix seconds; 0: never (FormGroupID)
	Members int    // it canceled the first Members members
}

// Member is one transaction of a group.
type Member struct {
	Hash       chain.Hash
	Nonce      uint64
	EligibleAt uint64 // Unix seconds
	ExpiresAt  uint64 // Unix seconds, 0: never
	Ordinal    int    // its place in the order of joining, from 0
}

// Decide returns the events that a command adds: none if it changes nothing, an [eventlog.Refusal]
// if it is not allowed.
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

// Evolve applies one event. It cannot fail, because a recorded event has happened.
func (s State) Evolve(e Event) State {
	switch e := e.(type) {
	case Joined:
		s.NonceKey = e.NonceKey
		s.roll = s.roll.with(Member{e.Hash, e.Nonce, e.EligibleAt, e.ExpiresAt, s.Members})
		s.Members++
	case Canceled:
		s.Canceled = e.Members
		var now uint64 // FormGroupID drops no authority: its cancel may carry any time
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

// shownAt returns a copy of the authorities that have not expired at a time.
func (s State) shownAt(seconds uint64) map[chain.Hash]Shown {
	shown := map[chain.Hash]Shown{}
	maps.Copy(shown, s.Shown)
	maps.DeleteFunc(shown, func(_ chain.Hash, a Shown) bool { return a.Expires > 0 && a.Expires <= seconds })
	return shown
}

// Found returns the members that an authority canceled, in the order of joining; none if it was
// not recorded.
func (s State) Found(by Authority) []Member { return s.List()[:s.Shown[by.Digest].Members] }

// Member returns the member with a hash.
func (s State) Member(hash chain.Hash) (Member, bool) { return s.roll.find(hash) }

// IsCanceled reports whether a member was canceled.
func (s State) IsCanceled(m Member) bool { return m.Ordinal < s.Canceled }

// List returns all members in the order of joining.
func (s State) List() []Member {
	all := slices.Concat(s.roll...)
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return all
}

package signer

import (
	"fmt"
	"slices"
	"sort"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Serves refuses calls that are not the signer's to make. Pool is the one that was
// asked for; empty when the signer itself was.
func (s State) Serves(pool string, calls []chain.Call) error {
	if !s.Known {
		return ErrUnknown
	}
	if pool != "" && !slices.Contains(s.Pools, pool) {
		return ErrPool.Because("it is in %q, not in %q", s.Pools, pool)
	}
	for i, c := range calls {
		if !s.Targets.Allows(c.To, c.Input) {
			return ErrTarget.Because("call %d is none that it may make", i)
		}
	}
	return nil
}

// Load is what a lane has to do.
type Load struct {
	InFlight int // nonces that intents hold, or no-ops are to use up
	Capacity int // how many may be in flight
	// Stalled means that the first of them has waited too long to land: what comes
	// behind it waits too.
	Stalled bool
	// Barred means that the budget of its signer or its chain has nothing left, or that
	// a switch is thrown: whatever it takes it cannot sign for.
	Barred bool
}

// Room is how many more intents a lane of the signer may be given. With each failure in
// a row it is half as many, but one at a time can always show that all is well again.
func (s State) Room(l Load) int {
	if l.InFlight < 0 || l.Capacity < 0 {
		panic(fmt.Sprintf("signer: %+v is no load", l))
	}
	if !s.Takes() || l.Stalled || l.Barred {
		return 0
	}
	capacity := l.Capacity
	if n := len(s.Failures); n > 0 {
		capacity = min(capacity, max(capacity>>min(n, 62), 1))
	}
	return max(capacity-l.InFlight, 0)
}

// Share is one lane's place among those that may claim the same intents.
type Share struct {
	InFlight int
	Room     int
}

// ClaimMax bounds how many intents are claimed at once.
const ClaimMax = 1000

// Claim is how many of the intents that wait a lane takes: so many that all lanes with
// room have the same in flight afterwards, if each does likewise. So who has least to do
// takes most. What cannot be halved is claimed by both, and one of them finds it gone.
//
// The others are as somebody saw them a moment ago. If that was wrong one lane takes too
// few, and takes the rest when it claims again; or too many, and the others the next
// ones. Each intent is assigned once, whatever was claimed.
func Claim(waiting int, mine Share, others []Share) int {
	all := append(slices.Clone(others), mine)
	top := 0
	for _, l := range all {
		if l.InFlight < 0 || l.Room < 0 {
			panic(fmt.Sprintf("signer: %+v is no share", l))
		}
		top = max(top, l.InFlight+l.Room)
	}
	level := sort.Search(top, func(level int) bool {
		claimed := 0
		for _, l := range all {
			claimed += l.upTo(level)
		}
		return claimed >= waiting
	})
	return max(min(mine.upTo(level), waiting, ClaimMax), 0)
}

// upTo is how many more bring the lane up to so many in flight.
func (l Share) upTo(level int) int { return min(max(level-l.InFlight, 0), l.Room) }

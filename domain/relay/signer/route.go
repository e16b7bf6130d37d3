package signer

import (
	"fmt"
	"slices"
	"sort"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Serves refuses calls that the signer may not make. pool is the requested pool; empty if the
// signer itself was requested.
func (s State) Serves(pool string, calls []chain.Call) error {
	if !s.Known {
		return ErrUnknown
	}
	if pool != "" && !slices.Contains(s.Pools, pool) {
		return ErrPool.Because("it is in %q, not in %q", s.Pools, pool)
	}
	for i, c := range calls {
		if !s.Targets.Allows(c.To, c.Input) {
			return ErrTarget.Because("it may not make call %d", i)
		}
	}
	return nil
}

// Load is the work of a lane.
type Load struct {
	InFlight int // nonces held by intents or to be used up by no-ops
	Capacity int // the maximum of InFlight
	// Stalled means that the lane's first nonce has waited too long to land; all later ones wait
	// for it.
	Stalled bool
	// Barred means that the budget of its signer or chain is used up, or that a switch stops it:
	// it could not sign for further intents.
	Barred bool
}

// Room returns how many more intents a lane of the signer may get. Each consecutive failure
// halves it, down to one intent, which can prove that the signer works again.
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

// Share is one lane's load among the lanes that may claim the same intents.
type Share struct {
	InFlight int
	Room     int
}

// ClaimMax bounds the intents of one claim.
const ClaimMax = 1000

// Claim returns how many waiting intents a lane should claim. If all lanes with room follow it,
// they end with equal numbers in flight, so the least busy lane claims most. Remainders are
// claimed by several lanes, and only one of them gets each intent.
//
// The loads of the other lanes may be outdated. Then one lane claims too few, and claims the rest
// later; or too many, and the other lanes get the next ones. Each intent is still assigned once.
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

// upTo returns how many intents bring the lane to level in flight, within its room.
func (l Share) upTo(level int) int { return min(max(level-l.InFlight, 0), l.Room) }

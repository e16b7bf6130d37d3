package group

import (
	"cmp"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Command is an observation about a group, or a request to change it. It carries its own time:
// nothing in this package reads a clock.
//
//sumtype:decl
type Command interface{ wish() }

// Join adds accepted transactions as members, at most [JoinMax], in their order, until the group
// is full. A full group leaves the others out, which is no refusal. Existing members add nothing.
// If one transaction has another nonce key, all are refused.
type Join struct {
	Members []Joined
	// Max lowers [MembersMax], for tests. 0: MembersMax.
	Max int
}

// JoinMax bounds the transactions that join by one command.
const JoinMax = eventlog.MaxAppend

// MembersMax bounds the members of a group. The whole group is in memory when a transaction joins
// it and when its owner cancels it. So many members take 5.6 MB in a snapshot, a sixth of the
// largest snapshot that is kept, and load in a fraction of a second. Groups that became larger
// before there was a bound keep their members.
const MembersMax = 100_000

// most returns the bound of the members by this command.
func (c Join) most() int { return min(MembersMax, cmp.Or(c.Max, MembersMax)) }

// Cancel is the owner's request to stop sending the present members. The authority is verified
// before, because that needs no knowledge of the group.
type Cancel struct {
	By Authority
	At time.Time
}

func (Join) wish()   {}
func (Cancel) wish() {}

const (
	ErrUnknown    = eventlog.Refusal("unknown-group")
	ErrNonceKey   = eventlog.Refusal("group-nonce-key")       // another nonce key with the same group id
	ErrExpired    = eventlog.Refusal("authorization-expired") // past the authority's expiry
	ErrShownOften = eventlog.Refusal("too-many-authorizations")
)

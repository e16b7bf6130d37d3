package group

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Command is an observation about a group, or a request to change it. It carries its own time:
// nothing in this package reads a clock.
//
//sumtype:decl
type Command interface{ wish() }

// Join adds accepted transactions as members, at most [JoinMax]. Existing members add nothing. If
// one transaction may not join, all are refused.
type Join struct{ Members []Joined }

// JoinMax bounds the transactions that join by one command.
const JoinMax = event.MaxAppend

// Cancel is the owner's request to stop sending the present members. The authority is verified
// before, because that needs no knowledge of the group.
type Cancel struct {
	By Authority
	At time.Time
}

func (Join) wish()   {}
func (Cancel) wish() {}

const (
	ErrUnknown    = event.Refusal("unknown-group")
	ErrNonceKey   = event.Refusal("group-nonce-key")       // another nonce key with the same group id
	ErrExpired    = event.Refusal("authorization-expired") // past the authority's expiry
	ErrShownOften = event.Refusal("too-many-authorizations")
)

package group

import (
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Command is news about a group, or a wish. It carries its own time: nothing in
// this package reads a clock.
//
//sumtype:decl
type Command interface{ wish() }

// Join makes accepted transactions members. Those that are members add nothing;
// one that may not join refuses them all. At most [JoinMax] of them.
type Join struct{ Members []Joined }

// JoinMax bounds how many transactions join by one command.
const JoinMax = event.MaxAppend

// Cancel is the owner's wish that the members there are be sent no more. The
// authority has been verified: that needs no knowledge of the group.
type Cancel struct {
	By Authority
	At time.Time
}

func (Join) wish()   {}
func (Cancel) wish() {}

const (
	ErrUnknown    = event.Refusal("unknown-group")
	ErrNonceKey   = event.Refusal("group-nonce-key")       // another nonce key with the same group id
	ErrExpired    = event.Refusal("authorization-expired") // signed too long ago
	ErrShownOften = event.Refusal("too-many-authorizations")
)

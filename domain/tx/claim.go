package tx

import (
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// An access key's signature names its sender freely: whether the key may sign for
// that account only the chain can say, or the account itself in the same bytes. Until one
// of them does, the sender is a claim: the transaction is in nobody's group and takes no
// place among the named sender's transactions.

// Claim is a transaction whose sender is only claimed.
type Claim struct {
	Chain    chain.ID
	Hash     chain.Hash
	Key      chain.AccessKey
	Position event.Position // of its Accepted
}

// Claims reports whether the transaction's bytes leave open that they are the sender's.
func (a Accepted) Claims() bool { return a.Signature == chain.Keychain && !a.Authorized }

// Claimed reports whether the sender is only claimed: an access key signed, and nothing
// shows yet that it may.
func (s State) Claimed() bool { return s.Accepted.Claims() && s.Confirmed == nil }

// GroupPending reports whether the transaction would have a group if the chain
// confirmed its access key.
func (s State) GroupPending() bool { return s.Accepted.Group != nil && s.Claimed() }

// Group is the group that the transaction is in; nil when it is in none, or not yet.
func (s State) Group() *chain.GroupID {
	if s.GroupPending() {
		return nil
	}
	return s.Accepted.Group
}

// doubtsMax bounds how many doubts are recorded: a key that comes and goes must not
// write a history without end.
const doubtsMax = 16

func (s State) doubtGroup(c DoubtGroup) ([]Event, error) {
	if !s.Claimed() || s.Retired || c.Reason == s.Doubt || s.Doubts >= doubtsMax {
		return nil, nil
	}
	return []Event{GroupDoubted(c)}, nil
}

func (s State) confirmGroup(c ConfirmGroup) ([]Event, error) {
	if !s.Claimed() || s.Retired {
		return nil, nil
	}
	return []Event{GroupConfirmed(c)}, nil
}

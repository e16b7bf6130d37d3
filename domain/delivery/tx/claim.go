package tx

import (
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The signature of an access key names its sender freely. The key's authority for that account is
// confirmed by the chain, or by a signature of the account's own key in the same bytes. Until one
// of them confirms it, the sender is only claimed: the transaction is in no group and has no
// place among the named sender's transactions.

// Claim is a transaction whose sender is only claimed.
type Claim struct {
	Chain    chain.ID
	Hash     chain.Hash
	Key      chain.AccessKey
	Position eventlog.Position // position of its Accepted event
}

// Claims reports whether an access key signed and the bytes do not prove its authority.
func (a Accepted) Claims() bool { return a.Signature == chain.Keychain && !a.Authorized }

// Claimed reports whether the sender is only claimed: an access key signed, and neither the bytes
// nor the chain have confirmed its authority.
func (s State) Claimed() bool { return s.Accepted.Claims() && s.Confirmed == nil }

// GroupPending reports whether the transaction joins a group once the chain confirms its access
// key.
func (s State) GroupPending() bool { return s.Accepted.Group != nil && s.Claimed() }

// Group returns the transaction's group; nil if it has none, or while GroupPending.
func (s State) Group() *chain.GroupID {
	if s.GroupPending() {
		return nil
	}
	return s.Accepted.Group
}

// doubtsMax bounds the recorded doubts: a key that is granted and revoked repeatedly must not
// write an unbounded history.
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

package group

import (
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Plan is what it takes to make a group's transactions worthless on chain, which
// is the only cancel that binds those who have the signed bytes: the owner must
// use up each of these nonces of the nonce key by other transactions.
type Plan struct {
	NonceKey chain.NonceKey
	// Nonces are the members', rising, each once. There are none for the expiring
	// nonce key: those transactions end by their validity window alone.
	Nonces []uint64
	// Known means that the chain told its nonce; without it the rest is unknown.
	Known bool
	// Current is the next nonce that the chain wants of the nonce key, and
	// Invalidated means that it is past all of Nonces.
	Current     uint64
	Invalidated bool
}

// PlanCancel makes the plan of a group whose members have these nonces, in any
// order. current is what the chain says is the next nonce, nil if it says nothing.
func PlanCancel(key chain.NonceKey, nonces []uint64, current *uint64) Plan {
	p := Plan{NonceKey: key}
	if key.IsExpiring() {
		return p
	}
	p.Nonces = slices.Clone(nonces)
	slices.Sort(p.Nonces)
	p.Nonces = slices.Compact(p.Nonces)
	if current == nil {
		return p
	}
	p.Known, p.Current = true, *current
	p.Invalidated = len(p.Nonces) == 0 || *current > p.Nonces[len(p.Nonces)-1]
	return p
}

package group

import (
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Plan lists the nonces that the owner must use up with other transactions to invalidate a group
// on chain. That is the only cancel that binds holders of the signed bytes.
type Plan struct {
	NonceKey chain.NonceKey
	// Nonces are the members' distinct nonces, in rising order. It is empty for the expiring
	// nonce key: those transactions end only with their validity window.
	Nonces []uint64
	// Known means that the chain's next nonce is known; otherwise Current and Invalidated are
	// unset.
	Known bool
	// Current is the chain's next nonce of the nonce key. Invalidated means that it is above all
	// Nonces.
	Current     uint64
	Invalidated bool
}

// PlanCancel returns the plan for a group whose members have these nonces, in any order. current
// is the chain's next nonce, nil if unknown.
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

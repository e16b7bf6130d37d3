package grouping

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Steps makes a verifier's single steps, with a memory of their own.
func (v *Verifier) Steps() func(context.Context) error {
	return (&round{Verifier: v, pauses: map[chain.Hash]pause{}, seen: map[chain.Hash]bool{}}).step
}

const ClaimsMax = claimsMax

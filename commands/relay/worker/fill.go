package worker

import (
	"context"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// fill fills holes without an intent with no-ops.
func (a *actor) fill(ctx context.Context) error {
	var nonces []uint64
	for _, hole := range a.held.State.Holes() {
		if hole.Intent.IsZero() {
			nonces = append(nonces, hole.Nonce)
		}
	}
	for some := range slices.Chunk(nonces, lane.BatchMax) {
		if err := a.command(ctx, lane.Fill{Token: a.token, Nonces: some, At: a.Now()}); err != nil {
			return err
		}
	}
	return nil
}

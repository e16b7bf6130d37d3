package worker

import (
	"context"
	"errors"
	"slices"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
)

// Attempts reports whether stored bytes are an attempt that may still have to be handed to
// delivery: the process that stored them may have been down since.
type Attempts struct {
	Lanes  Lanes
	Vault  commands.Vault
	Decode func(raw []byte) (chain.Signed, error)
}

// Wanted reports whether the bytes are an attempt at an open nonce. Unreadable bytes are
// not: see [payload.ErrSealed].
func (a Attempts) Wanted(ctx context.Context, ref payload.Ref) (bool, error) {
	raw, err := a.Vault.Bytes(ctx, ref)
	if errors.Is(err, payload.ErrGone) || errors.Is(err, payload.ErrSealed) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	signed, err := a.Decode(raw)
	if err != nil {
		return false, nil //nolint:nilerr // it is none of ours: what was signed here can be read
	}
	held, err := a.Lanes.Load(ctx, lane.Stream(chain.Sequence{Chain: signed.Chain, Sender: signed.Sender, Key: signed.NonceKey}))
	if err != nil {
		return false, err
	}
	slot, open := held.State.Slot(signed.Nonce)
	return open && slices.Contains(hashes(slot), ref.Hash), nil
}

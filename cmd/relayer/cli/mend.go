package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Mender asks a running relayer to repair lanes, on its internal listener.
type Mender struct{ door remote.Door }

// Flags adds the flags with the relayer's address.
func (m *Mender) Flags(cmd *cobra.Command) {
	m.door.Listener = internal
	m.door.Connection(cmd, "admin-url")
}

// Fill fills nonce gaps of a lane. It returns the intents that will give nonces back, by nonce.
func (m *Mender) Fill(ctx context.Context, id chain.Sequence, nonces []uint64, reason string) (map[uint64]chain.IntentID, error) {
	answer, err := m.door.Ask(ctx, remote.Request{
		Method: http.MethodPost, Path: []string{"admin", "lanes", id.Chain.String(), id.Sender.String(), id.Key.String(), "fill"},
		Body: map[string]any{"nonces": nonces, "reason": reason},
	})
	if err != nil {
		return nil, err
	}
	var told struct {
		Given []struct {
			Nonce  uint64
			Intent chain.IntentID
		}
	}
	if err := json.Unmarshal(answer, &told); err != nil {
		return nil, fmt.Errorf("the relayer's response cannot be decoded: %w", err)
	}
	given := map[uint64]chain.IntentID{}
	for _, g := range told.Given {
		given[g.Nonce] = g.Intent
	}
	return given, nil
}

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Mender asks a running relayer to repair lanes, on its internal listener.
type Mender struct{ door }

// Flags adds the flags with the relayer's address.
func (m *Mender) Flags(flags *pflag.FlagSet) {
	m.listener = internal
	flags.StringVar(&m.url, "admin-url", "", "the URL of "+m.name+" (default: "+m.variable+", or "+m.standard+")")
	flags.StringVar(&m.keyFile, "key-file", "", "a file with an API key (default: the key in "+keyVar+", if it is set)")
}

// Fill fills nonce gaps of a lane. It returns the intents that will give nonces back, by nonce.
func (m *Mender) Fill(ctx context.Context, id chain.Sequence, nonces []uint64, reason string) (map[uint64]chain.IntentID, error) {
	answer, err := m.ask(ctx, asking{
		method: http.MethodPost, path: []string{"admin", "lanes", id.Chain.String(), id.Sender.String(), id.Key.String(), "fill"},
		body: map[string]any{"nonces": nonces, "reason": reason},
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

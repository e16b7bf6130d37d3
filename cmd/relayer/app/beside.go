package app

import (
	"context"

	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	delivery "github.com/tempo-watchtower/watchtower/cmd/watchtower/app"
	"github.com/tempo-watchtower/watchtower/commands/relayer"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// Beside makes what runs beside delivery in a process: it carries intents out with the
// keys of a ring, which stay the caller's. What it gives runs until its context ends.
func Beside(s settings.Settings, in delivery.Inside, ring *keys.Ring) (func(context.Context), error) {
	r, err := newRelay(s, in, ring)
	if err != nil {
		return nil, err
	}
	return r.run, nil
}

// Engine is a database other than the two that the program knows.
type Engine interface{ Intents() relayer.Queue }

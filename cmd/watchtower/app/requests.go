package app

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/commands/retention"
)

// Requests is where requests are remembered by their Idempotency-Key.
type Requests interface {
	api.Requests
	Forget(ctx context.Context, most, limit int) (int, error)
}

const (
	// idempotencyHold is how long, beyond what an answer may take, whoever carries
	// a request out is waited for.
	idempotencyHold = 10 * time.Second
	requestsSweep   = 10 * time.Second
	requestsSweeper = "requests.sweep"
)

func (a *App) sweepRequests(ctx context.Context) error {
	return retention.Requests{Rows: a.ports.Storage.Requests, Most: a.settings.MaxRequests, Pause: requestsSweep}.Run(ctx)
}

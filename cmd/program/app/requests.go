package app

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/delivery/retention"
	"github.com/tempo-watchtower/watchtower/domain/request"
)

// Requests stores requests by their Idempotency-Key.
type Requests interface {
	rest.Requests
	Usage(ctx context.Context, share int) (request.Usage, error)
	Forget(ctx context.Context, o request.Oldest) (int, error)
}

const (
	// idempotencyHold is how long a repeated request waits for the first, beyond the API's write
	// timeout.
	idempotencyHold = 10 * time.Second
	requestsSweep   = 10 * time.Second
	requestsSweeper = "requests.sweep"
)

func (a *App) sweepRequests(ctx context.Context) error {
	return retention.Requests{
		Rows: a.Ports.Storage.Requests, Most: a.Settings.MaxRequests, Share: a.Settings.ClientRequests, Pause: requestsSweep,
		Used: func(largest int) { a.Ports.Metrics.QuotaUsed("requests", largest, a.Settings.ClientRequests) },
	}.Run(ctx)
}

package app

import (
	"context"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// quota limits each client's waiting transactions; nil without a limit.
func (a *App) quota() *commands.Quota {
	limit, metrics := a.Settings.Quota, a.Ports.Metrics
	if limit == (tx.Usage{}) || a.Ports.Storage.Usage == nil {
		return nil
	}
	return &commands.Quota{
		Limit: limit, Now: a.Ports.Now,
		Count: func(ctx context.Context, client string) (tx.Usage, eventlog.Position, error) {
			return a.Ports.Storage.Usage(ctx, scheduler.Reader, client)
		},
		Used: func(most tx.Usage) {
			metrics.QuotaUsed("transactions", int(most.Transactions), int(limit.Transactions))
			metrics.QuotaUsed("bytes", int(most.Bytes), int(limit.Bytes))
		},
	}
}

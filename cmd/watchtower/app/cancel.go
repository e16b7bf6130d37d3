package app

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// stale lists, for each chain that is served, who asks it about used nonces.
func (a *App) stale() map[chain.ID]func(context.Context, chain.Hash, event.Meta) (tx.State, error) {
	ask := map[chain.ID]func(context.Context, chain.Hash, event.Meta) (tx.State, error){}
	for _, c := range a.ports.Chains {
		ask[c.ID] = a.watcher(c).Stale
	}
	return ask
}

package simulation

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Intents is a replica's access to the work queue of intents.
func (s storage) Intents() worker.Queue { return wanted{s} }

type wanted struct{ storage }

func (q wanted) Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []intent.Change) error {
	return told(ctx, q.storage, fmt.Sprintf("apply %s %d %d", reader, from, to), func(ctx context.Context) error {
		return q.world.store.Intents().Apply(ctx, reader, from, to, changes)
	})
}

func (q wanted) Claim(ctx context.Context, c intent.Claim) ([]intent.Claimed, error) {
	name := fmt.Sprintf("claim %s %d", c.Holder, c.Limit)
	return asked(ctx, q.storage, writing, name, func(ctx context.Context) ([]intent.Claimed, error) {
		return q.world.store.Intents().Claim(ctx, c)
	})
}

func (q wanted) Return(ctx context.Context, holder string, ids []chain.IntentID) error {
	return told(ctx, q.storage, fmt.Sprintf("return %s %s %d", holder, ids[0], len(ids)), func(ctx context.Context) error {
		return q.world.store.Intents().Return(ctx, holder, ids)
	})
}

func (q wanted) Demand(ctx context.Context, id chain.ID) ([]intent.Demand, error) {
	return asked(ctx, q.storage, reading, fmt.Sprintf("demand %s", id), func(ctx context.Context) ([]intent.Demand, error) {
		return q.world.store.Intents().Demand(ctx, id)
	})
}

func (q wanted) Open(ctx context.Context, client string, most int) (int, error) {
	return asked(ctx, q.storage, reading, fmt.Sprintf("open intents %d", most), func(ctx context.Context) (int, error) {
		return q.world.store.Intents().Open(ctx, client, most)
	})
}

func (q wanted) Ahead(ctx context.Context, row intent.Row, before eventlog.Position) (chain.IntentID, error) {
	return asked(ctx, q.storage, reading, fmt.Sprintf("ahead %s %d", row.Name(), before), func(ctx context.Context) (chain.IntentID, error) {
		return q.world.store.Intents().Ahead(ctx, row, before)
	})
}

package simulation

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func (s storage) Find(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]tx.Work, error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	return asked(ctx, s, reading, fmt.Sprintf("find %s %d", hashes[0], len(hashes)), func(ctx context.Context) ([]tx.Work, error) {
		return s.world.store.Find(ctx, id, hashes)
	})
}

func (s storage) Depth(ctx context.Context, id chain.ID) (tx.Depth, error) {
	return asked(ctx, s, reading, "depth", func(ctx context.Context) (tx.Depth, error) { return s.world.store.Depth(ctx, id) })
}

func (s storage) Soon(ctx context.Context, id chain.ID, limit int) ([]tx.Work, error) {
	return asked(ctx, s, reading, "soon", func(ctx context.Context) ([]tx.Work, error) { return s.world.store.Soon(ctx, id, limit) })
}

func (s storage) NextFree(ctx context.Context, q chain.Sequence, from uint64, clients []string) (uint64, error) {
	return asked(ctx, s, reading, fmt.Sprintf("next free %v %d", q, from), func(ctx context.Context) (uint64, error) {
		return s.world.store.NextFree(ctx, q, from, clients)
	})
}

func (s storage) Usage(ctx context.Context, reader, client string) (u tx.Usage, at eventlog.Position, err error) {
	u, err = asked(ctx, s, reading, fmt.Sprintf("usage of %q", client), func(ctx context.Context) (u tx.Usage, err error) {
		u, at, err = s.world.store.Usage(ctx, reader, client)
		return u, err
	})
	return u, at, err
}

func (s storage) Rivals(ctx context.Context, used map[chain.Sequence]uint64, mined []chain.Hash, limit int) (rows []tx.Work, unread []chain.Sequence, err error) {
	type answer struct {
		rows   []tx.Work
		unread []chain.Sequence
	}
	a, err := asked(ctx, s, reading, fmt.Sprintf("rivals %d", len(used)), func(ctx context.Context) (a answer, err error) {
		a.rows, a.unread, err = s.world.store.Rivals(ctx, used, mined, limit)
		return a, err
	})
	return a.rows, a.unread, err
}

func (s storage) Verdicts(ctx context.Context, id chain.ID, phase tx.Phase, from, to uint64, after chain.Hash, limit int) ([]tx.Work, error) {
	return asked(ctx, s, reading, fmt.Sprintf("verdicts %s %d %d", phase, from, to), func(ctx context.Context) ([]tx.Work, error) {
		return s.world.store.Verdicts(ctx, id, phase, from, to, after, limit)
	})
}

func (s storage) Expiring(ctx context.Context, id chain.ID, time uint64, each, limit int) ([]tx.Work, error) {
	return asked(ctx, s, reading, fmt.Sprintf("expiring %d", time), func(ctx context.Context) ([]tx.Work, error) {
		return s.world.store.Expiring(ctx, id, time, each, limit)
	})
}

func (s storage) Waiting(ctx context.Context, id chain.ID, limit int) ([]chain.Sequence, error) {
	return asked(ctx, s, writing, "waiting", func(ctx context.Context) ([]chain.Sequence, error) {
		return s.world.store.Waiting(ctx, id, limit)
	})
}

func (s storage) Wake(ctx context.Context, now map[chain.Sequence]uint64) (int, error) {
	if len(now) == 0 {
		return 0, nil
	}
	return asked(ctx, s, writing, fmt.Sprintf("wake %d", len(now)), func(ctx context.Context) (int, error) {
		return s.world.store.Wake(ctx, now)
	})
}

func (s storage) Advance(ctx context.Context, id chain.ID, blockTime uint64) (int, error) {
	return asked(ctx, s, writing, fmt.Sprintf("advance %d", blockTime), func(ctx context.Context) (int, error) {
		return s.world.store.Advance(ctx, id, blockTime)
	})
}

func (s storage) DropSealed(ctx context.Context, id chain.ID, below uint64) (int, error) {
	return asked(ctx, s, writing, fmt.Sprintf("drop sealed %d", below), func(ctx context.Context) (int, error) {
		return s.world.store.DropSealed(ctx, id, below)
	})
}

func (s storage) Blocks(ctx context.Context, id chain.ID) ([]chain.Block, error) {
	return asked(ctx, s, reading, "blocks", func(ctx context.Context) ([]chain.Block, error) { return s.world.store.Blocks(ctx, id) })
}

func (s storage) Remember(ctx context.Context, id chain.ID, blocks []chain.Block, keep uint64) error {
	return told(ctx, s, fmt.Sprintf("remember %d %d", len(blocks), keep), func(ctx context.Context) error {
		return s.world.store.Remember(ctx, id, blocks, keep)
	})
}

func (s storage) Watched(ctx context.Context, id chain.ID, after chain.Hash, limit int) ([]tx.Work, error) {
	return asked(ctx, s, reading, "watched "+after.String(), func(ctx context.Context) ([]tx.Work, error) {
		return s.world.store.Watched(ctx, id, after, limit)
	})
}

package tail

import (
	"context"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// WaitersMax bounds the concurrent waiters of one process.
const WaitersMax = 10_000

// Await returns a transaction's state as soon as done is true of it, which may be at once.
// It also waits for a transaction that is not accepted yet.
//
// Every error comes with the last state that was read. It is ctx's error, [ErrLeaving] when
// the process is about to stop, [ErrTooManyWaiters] when there is no room to wait, or the
// log's error. None of them says anything about the transaction.
func (t *Tail) Await(ctx context.Context, id chain.ID, hash chain.Hash, done func(tx.State) bool) (tx.State, error) {
	var seen handler.Result[tx.State]
	err := t.Until(ctx, func(ctx context.Context, w *Wait) (_ bool, err error) {
		if seen, err = t.Transaction(ctx, w, tx.Stream(id, hash), seen); err != nil {
			return false, err
		}
		return done(seen.State), nil
	})
	return seen.State, err
}

// Transaction is [Refresh] of a transaction's stream.
func (t *Tail) Transaction(ctx context.Context, w *Wait, stream eventlog.Stream, seen handler.Result[tx.State]) (handler.Result[tx.State], error) {
	return Refresh(ctx, w, stream, seen, func(ctx context.Context, seen handler.Result[tx.State]) (handler.Result[tx.State], error) {
		for recorded, err := range t.store.ReadStream(ctx, stream, seen.Version) {
			if err != nil {
				return seen, fmt.Errorf("read %s: %w", stream, err)
			}
			e, err := t.codec.Decode(recorded.Name, recorded.Data)
			if err != nil {
				return seen, fmt.Errorf("%s version %d: %w", stream, recorded.Version, err)
			}
			seen.State, seen.Version = seen.State.Evolve(e), recorded.Version
		}
		return seen, nil
	})
}

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
	stream := tx.Stream(id, hash)
	var seen handler.Result[tx.State]
	err := t.Until(ctx, stream, func(ctx context.Context) (bool, error) {
		if err := t.Refresh(ctx, stream, &seen); err != nil {
			return false, err
		}
		return done(seen.State), nil
	})
	return seen.State, err
}

// Refresh applies the events of a transaction's stream that seen does not contain yet.
func (t *Tail) Refresh(ctx context.Context, stream eventlog.Stream, seen *handler.Result[tx.State]) error {
	for recorded, err := range t.store.ReadStream(ctx, stream, seen.Version) {
		if err != nil {
			return fmt.Errorf("read %s: %w", stream, err)
		}
		e, err := t.codec.Decode(recorded.Name, recorded.Data)
		if err != nil {
			return fmt.Errorf("%s version %d: %w", stream, recorded.Version, err)
		}
		seen.State, seen.Version = seen.State.Evolve(e), recorded.Version
	}
	return nil
}

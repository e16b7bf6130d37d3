package watcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const (
	watchedMax   = 64             // rows looked at for one head
	watchedAgain = 24 * time.Hour // from the beginning of one round to that of the next
)

// round is a way through what is watched.
type round struct {
	began   time.Time // zero: one is due
	running bool
	after   chain.Hash
}

// readWatched asks, a few for each head, for the nonces of what is canceled or refused.
// It is not sent, so nobody looks at it when it is due; that it was mined is seen in
// blocks, and blocks may have been skipped, or read before the board had the row. A
// round is made at the start, after blocks were skipped, and now and then. What has an
// expiring nonce is looked at when it expires.
func (r *run) readWatched(ctx context.Context, tip chain.Block) error {
	if !r.round.running {
		if r.Now().Sub(r.round.began) < watchedAgain {
			return nil
		}
		r.round = round{began: r.Now(), running: true}
	}
	rows, err := r.Board.Watched(ctx, r.Chain, r.round.after, watchedMax)
	if err != nil {
		return err
	}
	if r.round.running = len(rows) == watchedMax; r.round.running {
		r.round.after = rows[len(rows)-1].Hash
	}
	var sequences []chain.Sequence
	for _, row := range rows {
		if s := row.Sequence(); !s.Key.IsExpiring() && !slices.Contains(sequences, s) {
			sequences = append(sequences, s)
		}
	}
	if err := r.readNonces(ctx, tip, sequences); err != nil {
		r.postpone(sequences)
		return fmt.Errorf("watched: %w", err)
	}
	return nil
}

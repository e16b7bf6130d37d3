package watcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const (
	watchedMax = 64 // rows looked at for one head
	// From the beginning of one round to that of the next: the first pause, which doubles,
	// and the longest. The board may still be on its way when watching begins, and a
	// round that finds nothing on it says nothing.
	watchedFirst = 5 * time.Second
	watchedAgain = 24 * time.Hour
)

// round is a way through what is watched.
type round struct {
	began   time.Time
	pause   time.Duration // until the next; zero: one is due
	running bool
	after   chain.Hash
}

// readWatched asks, a few for each head, for the nonces of what is canceled or refused.
// It is not sent, so nobody looks at it when it is due; that it was mined is seen in
// blocks, and blocks may have been skipped, or read before the board had the row. Rounds
// are made from the start on, and anew after blocks were skipped, ever more rarely. What
// has an expiring nonce is looked at when it expires.
func (r *run) readWatched(ctx context.Context, tip chain.Block) error {
	if !r.round.running {
		if r.Now().Sub(r.round.began) < r.round.pause {
			return nil
		}
		pause := min(max(2*r.round.pause, watchedFirst), watchedAgain)
		r.round = round{began: r.Now(), pause: pause, running: true}
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
		if s := row.Named(); !s.Key.IsExpiring() && !slices.Contains(sequences, s) {
			sequences = append(sequences, s)
		}
	}
	if err := r.readNonces(ctx, tip, sequences); err != nil {
		r.postpone(sequences)
		return fmt.Errorf("watched: %w", err)
	}
	return nil
}

package watcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const (
	watchedMax = 64 // rows read for one head
	// The first pause between the starts of two rounds, which then doubles, and the
	// longest. The board may still be filling when watching begins, so a round that finds
	// nothing proves nothing.
	watchedFirst = 5 * time.Second
	watchedAgain = 24 * time.Hour
)

// round is one pass through the watched rows.
type round struct {
	began   time.Time
	pause   time.Duration // until the next round; zero: due now
	running bool
	after   chain.Hash
}

// readWatched asks, a few per head, for the nonces of canceled and refused transactions.
// They are not sent, so no attempt looks at them. They are found when mined in a block, but
// blocks may have been skipped, or read before the board had the row. Rounds run from the
// start, again after skipped blocks, and then ever more rarely. Transactions with an
// expiring nonce are checked when they expire.
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

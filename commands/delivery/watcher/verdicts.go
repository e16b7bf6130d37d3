package watcher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// outrun settles the rivals whose nonce others have used, and wakes the rows that waited.
// used is certain as far as sure goes; the rest is a block's own claim. Our own
// transactions used their nonces themselves: the board may not show that yet. left are the
// sequences whose rivals are not all settled: one client's rivals hide none of another's.
func (r *run) outrun(ctx context.Context, at chain.Block, used, sure map[chain.Sequence]uint64, own []entry) (left []chain.Sequence, err error) {
	minedHere := r.recording.hashes(used)
	for _, e := range own {
		minedHere = append(minedHere, e.row.Hash)
	}
	rivals, left, err := r.Board.Rivals(ctx, used, minedHere, rowsMax)
	if err != nil {
		return nil, err
	}
	used, err = r.makeSure(ctx, at, rivals, used, sure)
	if err != nil {
		for _, row := range rivals {
			left = append(left, row.Named())
		}
		return left, err
	}
	var outdone []absence
	for _, row := range rivals {
		if next := used[row.Named()]; next > row.Nonce {
			outdone = append(outdone, absence{row: row, at: at, verdict: tx.SeeNonce{Block: at, Current: next, At: r.Now()}})
		}
	}
	for _, row := range r.settleAll(ctx, rivalry, at, outdone) {
		left = append(left, row.Named())
	}
	_, err = r.Board.Wake(ctx, used)
	return left, err
}

// makeSure asks for the nonces of the rivals' sequences if only a block states that they
// were used: a single node's statement makes no transaction stale.
func (r *run) makeSure(ctx context.Context, at chain.Block, rivals []tx.Work, used, sure map[chain.Sequence]uint64) (map[chain.Sequence]uint64, error) {
	var doubted []chain.Sequence
	for _, row := range rivals {
		if s := row.Named(); sure[s] <= row.Nonce && !slices.Contains(doubted, s) {
			doubted = append(doubted, s)
		}
	}
	if len(doubted) == 0 {
		return used, nil
	}
	nonces, err := r.Node.Nonces(ctx, at, doubted)
	if err != nil {
		return nil, fmt.Errorf("nonces: %w", err)
	}
	used = maps.Clone(used)
	for i, s := range doubted {
		used[s] = nonces[i]
	}
	return used, nil
}

// readTip does the work of a new head that needs no read of each block: expiry, eligibility
// by the chain's clock, and waiting sequences. An error in one part does not stop the
// others.
func (r *run) readTip(ctx context.Context, tip chain.Block) error {
	var expiring, news error
	if r.expired != tip.Hash {
		expiring = r.readExpiring(ctx, tip)
	}
	if r.told != tip.Hash {
		news = errors.Join(r.readEligible(ctx, tip), r.readWaiting(ctx, tip), r.readWatched(ctx, tip))
		if news == nil && len(r.unsettled.sequences) == 0 {
			r.told = tip.Hash
		}
	}
	return errors.Join(expiring, news)
}

// readExpiring settles transactions that have expired by the time of the tip. The tip is confirmed
// once, and only if a client's reads have shown that a transaction is in no block.
func (r *run) readExpiring(ctx context.Context, tip chain.Block) error {
	rows, err := r.Board.Expiring(ctx, r.Chain, tip.Time, settledMax, rowsMax)
	if err != nil {
		return err
	}
	rows, read := slices.DeleteFunc(rows, func(row tx.Work) bool { return r.recording.has(row.Hash) }), len(rows)
	shown := once(func() error {
		if err := r.Node.Shown(ctx, tip); err != nil {
			return fmt.Errorf("the time: %w", err)
		}
		return nil
	})
	all := make([]absence, len(rows))
	perClient := map[string]int{}
	more := read == rowsMax
	for i, row := range rows {
		all[i] = absence{row, tip, tx.SeeTime{Block: tip, At: r.Now()}, !row.NonceKey.IsExpiring(), shown}
		perClient[row.Client]++
		more = more || perClient[row.Client] == settledMax
	}
	if left := r.settleAll(ctx, expiry, tip, all); len(left) == 0 && !more {
		r.expired = tip.Hash
	}
	return nil
}

func (r *run) readEligible(ctx context.Context, tip chain.Block) error {
	// Always: the store's clock decides when rows are due, and it may be behind ours.
	_, err := r.Board.Advance(ctx, r.Chain, tip.Time)
	return err
}

// disown revokes verdicts that rest on reorged blocks. If a block of the new chain holds
// the transaction, its Reorged and Mined were already recorded together.
func (r *run) disown(ctx context.Context) error {
	for _, o := range r.orphans {
		for _, phase := range []tx.Phase{tx.Announced, tx.Sealed} {
			if err := r.withdraw(ctx, phase, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// age forgets orphans after orphanSteps steps.
func (r *run) age() {
	for i := range r.orphans {
		r.orphans[i].steps++
	}
	r.orphans = slices.DeleteFunc(r.orphans, func(o orphan) bool { return o.steps >= orphanSteps })
}

// withdraw revokes the verdicts of rows in a phase that rest on an orphan.
func (r *run) withdraw(ctx context.Context, phase tx.Phase, o orphan) error {
	var after chain.Hash
	for {
		rows, err := r.Board.Verdicts(ctx, r.Chain, phase, o.was.Number, o.was.Number, after, rowsMax)
		if err != nil {
			return err
		}
		more := len(rows) == rowsMax
		if more {
			after = rows[len(rows)-1].Hash
		}
		rows = slices.DeleteFunc(rows, func(row tx.Work) bool { return row.Block.Hash != o.was.Hash })
		err = each(rows, func(row tx.Work) error {
			return r.command(ctx, row.Hash, tx.LoseBlock{Was: o.was, Now: o.now, At: r.Now()})
		})
		if err != nil || !more {
			return err
		}
	}
}

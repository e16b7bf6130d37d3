package watcher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// outrun settles the rivals whose nonce others have used, and wakes the rows that waited.
// used is certain as far as sure goes; the rest is a block's own claim. The rows with a
// receipt used their nonces themselves: the board may not show that yet. left are the
// sequences whose rivals are not all settled: one client's rivals hide none of another's.
func (r *run) outrun(ctx context.Context, at chain.Block, used, sure map[chain.Sequence]uint64, receipts map[chain.Hash]chain.Receipt) (left []chain.Sequence, err error) {
	rivals, left, err := r.Board.Rivals(ctx, used, slices.Collect(maps.Keys(receipts)), rowsMax)
	if err != nil {
		return nil, err
	}
	used, err = r.makeSure(ctx, at, rivals, used, sure)
	if err == nil {
		err = each(rivals, func(row tx.Work) error {
			if used[row.Named()] <= row.Nonce {
				return nil
			}
			return r.settle(ctx, row.Hash, at, tx.SeeNonce{Block: at, Current: used[row.Named()], At: r.Now()})
		})
	}
	if err != nil {
		for _, row := range rivals {
			left = append(left, row.Named())
		}
		return left, err
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

// settle records a verdict that rests on the absence of a receipt up to a block, unless
// there is a receipt.
func (w *Watcher) settle(ctx context.Context, hash chain.Hash, at chain.Block, verdict tx.Command) error {
	receipt, err := w.receiptOf(ctx, w.Node, hash, at)
	switch {
	case err != nil:
		return fmt.Errorf("receipt of %s: %w", hash, err)
	case receipt != nil:
		return w.command(ctx, hash, tx.SeeReceipt{Receipt: *receipt, At: w.Now()})
	}
	return w.command(ctx, hash, verdict)
}

// readTip does the work of a new head that needs no read of each block: expiry, eligibility
// by the chain's clock, and waiting sequences. An error in one part does not stop the
// others.
func (r *run) readTip(ctx context.Context, tip chain.Block) error {
	return errors.Join(r.readExpiring(ctx, tip), r.readEligible(ctx, tip), r.readWaiting(ctx, tip), r.readWatched(ctx, tip))
}

func (r *run) readExpiring(ctx context.Context, tip chain.Block) error {
	expiring, err := r.Board.Expiring(ctx, r.Chain, tip.Time, rowsMax)
	if err != nil {
		return err
	}
	r.more = len(expiring) == rowsMax
	if len(expiring) > 0 {
		if err := r.Node.Shown(ctx, tip); err != nil {
			return fmt.Errorf("the time: %w", err)
		}
	}
	return each(expiring, func(row tx.Work) error {
		return r.settle(ctx, row.Hash, tip, tx.SeeTime{Block: tip, At: r.Now()})
	})
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

package watcher

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// read takes a new canonical block in: what it mined of ours, and which nonces it
// used up, whoever signed for them.
func (r *run) read(ctx context.Context, b block) error {
	rows, err := r.Board.Find(ctx, r.Chain, b.Hashes)
	if err != nil {
		return err
	}
	used := maps.Clone(b.Used)
	if used == nil {
		used = map[chain.Sequence]uint64{}
	}
	hashes, ours := make([]chain.Hash, len(rows)), map[chain.Sequence]uint64{}
	for i, row := range rows {
		hashes[i] = row.Hash
		if s := row.Named(); !s.Key.IsExpiring() {
			ours[s] = max(ours[s], row.Nonce+1)
			used[s] = max(used[s], ours[s])
		}
	}
	receipts := map[chain.Hash]chain.Receipt{}
	if len(rows) > 0 {
		if receipts, err = r.Node.Receipts(ctx, b.Block, hashes); err != nil {
			return fmt.Errorf("receipts: %w", err)
		}
	}
	if err := r.mined(ctx, b.Block, rows, receipts); err != nil {
		return err
	}
	if len(used) == 0 {
		return nil
	}
	left, err := r.outrun(ctx, b.Block, used, ours, receipts)
	if len(left) > 0 {
		// What is mined is told, and the blocks above are read. The rivals can wait.
		r.Log.Warn("rivals not settled yet", "chain", r.Chain, "block", b.Number, "err", err)
		r.postpone(left)
		return nil
	}
	return err
}

// mined records the receipts of a block's transactions.
func (r *run) mined(ctx context.Context, b chain.Block, rows []tx.Work, receipts map[chain.Hash]chain.Receipt) error {
	return each(rows, func(row tx.Work) error {
		receipt, ok := receipts[row.Hash]
		if !ok {
			return fmt.Errorf("no receipt of %s in block %s", row.Hash, b.Hash)
		}
		return r.command(ctx, row.Hash, tx.SeeReceipt{Receipt: receipt, At: r.Now()})
	})
}

// outrun settles the rivals whose nonce others have used, and wakes who waited. What
// is used is sure as far as it is in sure; the rest is what a block says of itself.
// Those with a receipt are the ones that used it: the board may not show that yet.
// left are the sequences in which that did not work out.
func (r *run) outrun(ctx context.Context, at chain.Block, used, sure map[chain.Sequence]uint64, receipts map[chain.Hash]chain.Receipt) (left []chain.Sequence, err error) {
	rivals, err := r.Board.Rivals(ctx, used, rowsMax)
	if err != nil {
		return nil, err
	}
	full := len(rivals) == rowsMax // there may be more
	rivals = slices.DeleteFunc(rivals, func(row tx.Work) bool {
		_, mined := receipts[row.Hash]
		return mined || row.Phase == tx.Announced
	})
	used, err = r.makeSure(ctx, at, rivals, used, sure)
	if err == nil {
		err = each(rivals, func(row tx.Work) error {
			if used[row.Named()] <= row.Nonce {
				return nil
			}
			return r.settle(ctx, row.Hash, at, tx.SeeNonce{Block: at, Current: used[row.Named()], At: r.Now()})
		})
	}
	if err != nil || full {
		for _, row := range rivals {
			left = append(left, row.Named())
		}
		if err != nil {
			return left, err
		}
	}
	_, err = r.Board.Wake(ctx, used)
	return left, err
}

// makeSure asks for the nonces of the rivals' sequences where it is only a block that
// says they were used: one node's word makes nothing stale.
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

// settle records a verdict that rests on the absence of a receipt up to a block,
// unless there is one.
func (w *Watcher) settle(ctx context.Context, hash chain.Hash, at chain.Block, verdict tx.Command) error {
	receipt, err := w.receiptOf(ctx, hash, at)
	switch {
	case err != nil:
		return fmt.Errorf("receipt of %s: %w", hash, err)
	case receipt != nil:
		return w.command(ctx, hash, tx.SeeReceipt{Receipt: *receipt, At: w.Now()})
	}
	return w.command(ctx, hash, verdict)
}

// readTip does once for a new head what needs no look at each block: expiry,
// eligibility by the chain's clock, and sequences that wait. None of them waits for
// another's trouble to pass.
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
	// Always: by whose clock rows fall due is the store's to say, and it may be behind ours.
	_, err := r.Board.Advance(ctx, r.Chain, tip.Time)
	return err
}

// readWaiting asks for the nonces that others wait for: a predecessor that is not
// ours lands without our seeing it in a block. So it does for sequences whose rivals
// are not settled yet.
func (r *run) readWaiting(ctx context.Context, tip chain.Block) error {
	waiting, err := r.Board.Waiting(ctx, r.Chain, waitingMax)
	if err != nil {
		return err
	}
	for _, s := range inOrder(r.unsettled) {
		if !slices.Contains(waiting, s) && len(waiting) < 2*waitingMax {
			waiting = append(waiting, s)
		}
	}
	return r.readNonces(ctx, tip, waiting)
}

// readNonces asks for the nonces of sequences, and does what follows from them.
func (r *run) readNonces(ctx context.Context, tip chain.Block, sequences []chain.Sequence) error {
	if len(sequences) == 0 {
		return nil
	}
	nonces, err := r.Node.Nonces(ctx, tip, sequences)
	if err != nil {
		return fmt.Errorf("nonces: %w", err)
	}
	now := make(map[chain.Sequence]uint64, len(sequences))
	for i, s := range sequences {
		now[s] = nonces[i]
	}
	left, err := r.outrun(ctx, tip, now, now, nil)
	if err != nil {
		return err
	}
	for _, s := range sequences {
		delete(r.unsettled, s)
	}
	r.postpone(left)
	return nil
}

// inOrder are sequences in an order that is the same in every run.
func inOrder(set map[chain.Sequence]bool) []chain.Sequence {
	return slices.SortedFunc(maps.Keys(set), func(a, b chain.Sequence) int {
		return cmp.Or(bytes.Compare(a.Sender[:], b.Sender[:]), bytes.Compare(a.Key[:], b.Key[:]))
	})
}

// postpone keeps sequences in mind whose rivals are not settled yet. Beyond the
// bound, those that are sent are looked at.
func (r *run) postpone(left []chain.Sequence) {
	for _, s := range left {
		if len(r.unsettled) < unsettledMax {
			r.unsettled[s] = true
		}
	}
}

// disown un-mines what rests on blocks that left the chain. A transaction that is
// in a block of the new chain has its Reorged and Mined recorded together already.
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

// age forgets orphans that have been looked at for long enough.
func (r *run) age() {
	for i := range r.orphans {
		r.orphans[i].steps++
	}
	r.orphans = slices.DeleteFunc(r.orphans, func(o orphan) bool { return o.steps >= orphanSteps })
}

// withdraw un-mines the rows in a phase that rest on an orphan.
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

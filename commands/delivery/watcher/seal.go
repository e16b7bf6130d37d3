package watcher

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// finalAgain is how long the last final block is reused while the head stays the same.
const finalAgain = 5 * time.Second

// asked is the last final block, the head it was asked at, and when.
type asked struct {
	head  chain.Hash
	final chain.Block
	at    time.Time
}

// finalize seals the verdicts of final blocks: a batch in each step, in turns, so that
// verdicts that cannot be sealed yet do not block the others.
func (r *run) finalize(ctx context.Context) error {
	if tip := r.tip(); r.asked.head != tip.Hash || r.Now().Sub(r.asked.at) >= finalAgain {
		final, err := r.Node.Final(ctx, tip)
		if err != nil {
			return fmt.Errorf("final block: %w", err)
		}
		r.asked = asked{tip.Hash, final, r.Now()}
	}
	final := r.asked.final
	if final.Number < r.final.Number || final.Number > r.tip().Number || r.elsewhere(final) {
		// The node lags, or is ahead of the blocks read here, or it is final on another
		// branch than the one read or still doubted.
		r.asked = asked{}
		return nil
	}
	if r.sealing.count() >= sealRows {
		return nil
	}
	rows, err := r.Board.Verdicts(ctx, r.Chain, tx.Announced, r.turn.number, final.Number, r.turn.after, rowsMax)
	if err != nil {
		return err
	}
	if len(rows) > 0 && r.sure != final {
		if err := r.Node.ShownFinal(ctx, final); err != nil {
			r.asked, r.final = asked{}, r.sure // the next node read may report an earlier final block
			return fmt.Errorf("final block: %w", err)
		}
		r.sure = final
	}
	r.turn = turn{}
	if len(rows) == rowsMax {
		last := rows[len(rows)-1]
		r.turn = turn{last.Block.Number, last.Hash}
	}
	rows = slices.DeleteFunc(rows, func(row tx.Work) bool { return r.sealing.has(row.Hash) })
	canonical, err := r.canonical(ctx, rows)
	if err != nil {
		return err
	}
	receipts, err := r.receipts(ctx, rows, canonical)
	if err != nil {
		return err
	}
	var missing []absence // verdicts that the blocks do not contain the transactions
	rows = slices.DeleteFunc(rows, func(row tx.Work) bool {
		if row.Verdict == tx.StatusExecuted || canonical[row.Block.Number].Hash != row.Block.Hash {
			return false
		}
		missing = append(missing, absence{
			row: row, at: row.Block, verdict: tx.Finalize{Final: final, At: r.Now()},
			mayBeFree: row.Verdict == tx.StatusExpired && !row.NonceKey.IsExpiring(),
		})
		return true
	})
	r.sealAll(ctx, rows, canonical, receipts, final)
	r.settleAll(ctx, sealing, r.tip(), missing) // the rows that are left are read again
	if final.Hash != r.final.Hash && final == r.sure && final.Number > finalityPast {
		if _, err := r.Board.DropSealed(ctx, r.Chain, final.Number-finalityPast); err != nil {
			return err
		}
	}
	r.final = final
	return nil
}

// elsewhere reports whether a block is on another branch than the blocks in memory. It must
// not seal verdicts on these. Below the blocks in memory nothing is known; canonical asks
// there.
func (r *run) elsewhere(b chain.Block) bool {
	return slices.ContainsFunc(r.blocks, func(known chain.Block) bool {
		return known.Number == b.Number && known.Hash != b.Hash
	})
}

// canonical returns the chain's blocks at the rows' heights, from memory or from the node.
func (r *run) canonical(ctx context.Context, rows []tx.Work) (map[uint64]chain.Block, error) {
	found := map[uint64]chain.Block{}
	for _, b := range r.blocks {
		found[b.Number] = b
	}
	for _, row := range rows {
		if _, ok := found[row.Block.Number]; ok {
			continue
		}
		b, _, err := r.Node.BlockAt(ctx, row.Block.Number)
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", row.Block.Number, err)
		}
		found[b.Number] = b
	}
	return found, nil
}

// receipts returns the receipts of executed rows that more than one endpoint confirms. The
// announced receipts may have come from a single endpoint when no other could be asked.
func (r *run) receipts(ctx context.Context, rows []tx.Work, canonical map[uint64]chain.Block) (map[chain.Hash]chain.Receipt, error) {
	wanted := map[chain.Block][]chain.Hash{}
	for _, row := range rows {
		if b := canonical[row.Block.Number]; row.Verdict == tx.StatusExecuted && row.Block.Hash == b.Hash {
			wanted[b] = append(wanted[b], row.Hash)
		}
	}
	all := map[chain.Hash]chain.Receipt{}
	for _, b := range slices.SortedFunc(maps.Keys(wanted), func(a, b chain.Block) int { return cmp.Compare(a.Number, b.Number) }) {
		found, err := r.Node.SureReceipts(ctx, b, wanted[b])
		if err != nil {
			return nil, fmt.Errorf("receipts of final block %d: %w", b.Number, err)
		}
		maps.Copy(all, found)
	}
	return all, nil
}

// sealAll seals executed transactions, with clients in turns. Those that are left are read again.
func (r *run) sealAll(ctx context.Context, rows []tx.Work, canonical map[uint64]chain.Block, receipts map[chain.Hash]chain.Receipt, final chain.Block) {
	some, tip := make([]entry, len(rows)), r.tip()
	for i, row := range rows {
		some[i] = entry{row, row.Block, func(ctx context.Context) error {
			return r.seal(ctx, row, canonical[row.Block.Number], receipts, final, tip)
		}}
	}
	r.sealing.begin(ctx, some)
}

// seal finalizes a verdict on a final block, after a last check: the transaction is executed, or the
// block has left the chain.
func (r *run) seal(ctx context.Context, row tx.Work, canonical chain.Block, receipts map[chain.Hash]chain.Receipt, final, tip chain.Block) error {
	if canonical.Hash != row.Block.Hash {
		if err := r.Node.Shown(ctx, canonical); err != nil {
			return err
		}
		return r.command(ctx, row.Hash, tx.LoseBlock{Was: row.Block, Now: canonical, At: r.Now()})
	}
	receipt, ok := receipts[row.Hash]
	if !ok {
		return r.unmine(ctx, row, tip)
	}
	return r.command(ctx, row.Hash, tx.Finalize{Final: final, Receipt: &receipt, At: r.Now()})
}

// unmine revokes that a transaction is in a block that does not hold it: a single endpoint
// reported it when no other could be asked. The transaction is in another block, or in
// none.
func (r *run) unmine(ctx context.Context, row tx.Work, tip chain.Block) error {
	receipt, err := r.receiptOf(ctx, r.Node, row.Hash, tip)
	switch {
	case err != nil:
		return fmt.Errorf("receipt of %s: %w", row.Hash, err)
	case receipt != nil:
		return r.command(ctx, row.Hash, tx.SeeReceipt{Receipt: *receipt, At: r.Now()})
	case tip.Hash == row.Block.Hash:
		return nil // the next head decides
	}
	r.Log.Warn("the recorded block does not contain the transaction", "chain", r.Chain, "tx", row.Hash, "block", row.Block.Hash)
	return r.command(ctx, row.Hash, tx.LoseBlock{Was: row.Block, Now: tip, At: r.Now()})
}

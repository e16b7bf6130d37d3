package watcher

import (
	"context"
	"fmt"
	"maps"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// readBlocks processes new canonical blocks, lowest first and a few at once, and adds them to
// the memory. With save it remembers each few: reading many blocks may take longer than this
// process holds its lease, and the next process goes on from there. It stops at the first block
// that could not be processed; the next step reads this block again.
func (r *run) readBlocks(ctx context.Context, fresh []block, save bool) error {
	for len(fresh) > 0 {
		some := fresh[:min(len(fresh), blocksMax)]
		if r.recording.full(some[len(some)-1].Number) {
			return nil // the next step reads on
		}
		done, err := r.read(ctx, some)
		for _, b := range some[:done] {
			r.blocks = append(r.blocks, b.Block)
		}
		fresh = fresh[done:]
		if save && len(fresh) > 0 && done > 0 {
			if lost := r.remember(ctx); lost != nil && err == nil {
				return lost
			}
		}
		if err != nil {
			return fmt.Errorf("block %d: %w", some[done].Number, err)
		}
	}
	return nil
}

// seen holds the facts that the board and the node have about a block.
type seen struct {
	used, ours map[chain.Sequence]uint64 // the next nonces after those used in it, by any signer and by our transactions
	mined      []entry
	err        error
}

// read processes new canonical blocks, lowest first: our transactions in them, and the nonces
// that they used, by any signer. With an error, only the first of them are done.
func (r *run) read(ctx context.Context, blocks []block) (done int, err error) {
	found := make([]seen, len(blocks))
	//nolint:errcheck // each block has its own error
	commands.Each(len(blocks), len(blocks), func(i int) error {
		found[i], found[i].err = r.look(ctx, blocks[i])
		return nil
	})
	all := seen{map[chain.Sequence]uint64{}, map[chain.Sequence]uint64{}, nil, nil}
	for _, s := range found {
		all.mined = append(all.mined, s.mined...) // also above a block that could not be read
	}
	r.recording.begin(ctx, all.mined)
	for _, s := range found {
		if err = s.err; err != nil {
			break
		}
		highest(all.used, s.used)
		highest(all.ours, s.ours)
		done++
	}
	if len(all.used) == 0 {
		return done, err
	}
	last := blocks[done-1].Block
	left, failed := r.outrun(ctx, last, all.used, all.ours, all.mined)
	switch {
	case len(left) > 0:
		// The blocks above are read. The rivals can wait.
		r.Log.Warn("transactions with the same nonce are not settled yet", "chain", r.Chain, "block", last.Number, "err", failed)
		r.postpone(left)
	case failed != nil:
		return 0, failed
	}
	return done, err
}

// highest raises the nonces in all to those in more.
func highest(all, more map[chain.Sequence]uint64) {
	for s, nonce := range more {
		all[s] = max(all[s], nonce)
	}
}

// look finds our transactions in a block, and reads their receipts.
func (r *run) look(ctx context.Context, b block) (seen, error) {
	rows, err := r.Board.Find(ctx, r.Chain, b.Hashes)
	if err != nil {
		return seen{}, err
	}
	s := seen{maps.Clone(b.Used), map[chain.Sequence]uint64{}, nil, nil}
	if s.used == nil {
		s.used = map[chain.Sequence]uint64{}
	}
	hashes := make([]chain.Hash, len(rows))
	for i, row := range rows {
		hashes[i] = row.Hash
		if named := row.Named(); !named.Key.IsExpiring() {
			s.ours[named] = max(s.ours[named], row.Nonce+1)
			s.used[named] = max(s.used[named], s.ours[named])
		}
	}
	if len(rows) == 0 {
		return s, nil
	}
	receipts, err := r.Node.Receipts(ctx, b.Block, hashes)
	if err != nil {
		return s, fmt.Errorf("receipts: %w", err)
	}
	for _, row := range rows {
		if receipt, ok := receipts[row.Hash]; ok {
			s.mined = append(s.mined, r.receipt(row, receipt))
		} else {
			err = fmt.Errorf("no receipt of %s in block %s", row.Hash, b.Hash)
		}
	}
	return s, err
}

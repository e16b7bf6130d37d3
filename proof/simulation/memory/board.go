package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/fair"
)

// Rivals returns open and watched rows of these sequences, but for the mined ones, with a
// nonce below the one given. limit is shared out among the sequences that have such rows;
// unread are the sequences with more rows than are returned.
func (s *Store) Rivals(ctx context.Context, used map[chain.Sequence]uint64, mined []chain.Hash, limit int) (found []tx.Work, unread []chain.Sequence, err error) {
	err = s.enter(ctx, func() {
		var own, claimed []chain.Sequence
		rows := map[chain.Sequence][]tx.Work{}
		for _, q := range ordered(used) {
			b := s.book(q.Chain)
			rows[q] = rivalsIn(b.sequences[q], nil, used[q], mined)
			first := len(rows[q])
			rows[q] = rivalsIn(b.named[q], rows[q], used[q], mined)
			switch {
			case first > 0:
				own = append(own, q)
			case len(rows[q]) > 0:
				claimed = append(claimed, q)
			}
		}
		sequences := append(own, claimed...)
		n, each := tx.ShareRivals(limit, len(sequences))
		var all []tx.Work
		for _, q := range sequences[:n] {
			all = append(all, rows[q]...)
		}
		found, unread = tx.CutRivals(all, each)
		unread = append(unread, sequences[n:]...)
	})
	return found, unread, err
}

// rivalsIn adds the rows of an index that are open or watched, have a nonce below the one
// given, and are not among the mined ones.
func rivalsIn(x *index, rows []tx.Work, below uint64, mined []chain.Hash) []tx.Work {
	if x == nil {
		return rows
	}
	for _, r := range x.items {
		if r.Nonce < below && (r.Phase == tx.Open || r.Phase == tx.Watched) && !slices.Contains(mined, r.Hash) {
			rows = append(rows, r.Work)
		}
	}
	return rows
}

// ordered are the keys of a map in an order that is the same in each run.
func ordered[V any](m map[chain.Sequence]V) []chain.Sequence {
	keys := make([]chain.Sequence, 0, len(m))
	for s := range m {
		keys = append(keys, s)
	}
	slices.SortFunc(keys, func(a, b chain.Sequence) int {
		return cmp.Or(cmp.Compare(a.Chain, b.Chain), bytes.Compare(a.Sender[:], b.Sender[:]), bytes.Compare(a.Key[:], b.Key[:]))
	})
	return keys
}

// Verdicts returns rows with a verdict based on a block in the given range, ordered by block and
// hash. In block from it returns only rows with a hash above after.
func (s *Store) Verdicts(ctx context.Context, id chain.ID, phase tx.Phase, from, to uint64, after chain.Hash, limit int) (found []tx.Work, err error) {
	err = s.enter(ctx, func() {
		x := s.book(id).verdicts[phase]
		at, _ := slices.BinarySearchFunc(x.items, from, func(r *row, number uint64) int { return cmp.Compare(r.Block.Number, number) })
		for _, r := range x.items[at:] {
			if r.Block.Number > to || len(found) >= limit {
				return
			}
			if r.Block.Number > from || bytes.Compare(r.Hash[:], after[:]) > 0 {
				found = append(found, r.Work)
			}
		}
	})
	return found, err
}

// Expiring returns open and watched rows whose time has passed, of each client at most `each`.
func (s *Store) Expiring(ctx context.Context, id chain.ID, time uint64, each, limit int) (found []tx.Work, err error) {
	err = s.enter(ctx, func() {
		all := map[string][]tx.Work{}
		for _, phase := range []tx.Phase{tx.Open, tx.Watched} {
			for _, r := range s.book(id).expiring[phase].items {
				if r.ExpiresAt > time {
					break
				}
				all[r.Client] = append(all[r.Client], r.Work)
			}
		}
		for client, rows := range all {
			slices.SortStableFunc(rows, func(a, b tx.Work) int { return cmp.Compare(a.ExpiresAt, b.ExpiresAt) })
			all[client] = rows[:min(len(rows), each)]
		}
		found = fair.Deal("", limit, all)
	})
	return found, err
}

// Waiting returns waiting sequences, longest unseen first, and marks them as seen.
func (s *Store) Waiting(ctx context.Context, id chain.ID, limit int) (found []chain.Sequence, err error) {
	err = s.enter(ctx, func() {
		b := s.book(id)
		known := map[chain.Sequence]bool{}
		for _, r := range b.waiting.items {
			if len(found) >= limit {
				break
			}
			if q := r.Sequence(); !known[q] {
				known[q], found = true, append(found, q)
			}
		}
		now := s.now()
		for _, q := range found {
			turn := s.nextTurn(now)
			for _, r := range slices.Clone(b.sequences[q].items) {
				if r.WaitNonce != 0 {
					b.update(r, func() { r.seen = turn })
				}
			}
		}
	})
	return found, err
}

// Wake makes rows due whose nonce has been reached by the chain.
func (s *Store) Wake(ctx context.Context, now map[chain.Sequence]uint64) (woken int, err error) {
	err = s.enter(ctx, func() {
		for _, q := range ordered(now) {
			b := s.book(q.Chain)
			if x := b.sequences[q]; x != nil {
				woken += s.hurry(b, x, func(r *row) bool { return r.WaitNonce != 0 && r.WaitNonce <= now[q] })
			}
		}
	})
	return woken, err
}

// Advance makes rows due that are eligible by the chain's clock before ours.
func (s *Store) Advance(ctx context.Context, id chain.ID, blockTime uint64) (advanced int, err error) {
	err = s.enter(ctx, func() {
		b, now := s.book(id), uint64(s.now().Unix())
		advanced = s.hurry(b, b.unsent, func(r *row) bool { return r.EligibleAt > now && r.EligibleAt <= blockTime })
	})
	return advanced, err
}

// DropSealed removes sealed rows below a block.
func (s *Store) DropSealed(ctx context.Context, id chain.ID, below uint64) (dropped int, err error) {
	err = s.enter(ctx, func() {
		b := s.book(id)
		for len(b.verdicts[tx.Sealed].items) > 0 {
			r := b.verdicts[tx.Sealed].items[0]
			if r.Block.Number >= below {
				return
			}
			b.leave(r)
			dropped++
		}
	})
	return dropped, err
}

// Blocks returns the remembered blocks of a chain, lowest first.
func (s *Store) Blocks(ctx context.Context, id chain.ID) (blocks []chain.Block, err error) {
	err = s.enter(ctx, func() { blocks = slices.Clone(s.blocks[id]) })
	return blocks, err
}

// Remember replaces the blocks from the first of blocks on, and deletes the blocks below keep.
func (s *Store) Remember(ctx context.Context, id chain.ID, blocks []chain.Block, keep uint64) error {
	return s.enter(ctx, func() {
		left := slices.DeleteFunc(s.blocks[id], func(b chain.Block) bool {
			return b.Number < keep || len(blocks) > 0 && b.Number >= blocks[0].Number
		})
		for _, b := range blocks {
			if b.Number >= keep {
				left = append(left, b)
			}
		}
		s.blocks[id] = left
	})
}

// Watched returns watched rows with a hash above after, ordered by hash.
func (s *Store) Watched(ctx context.Context, id chain.ID, after chain.Hash, limit int) (found []tx.Work, err error) {
	err = s.enter(ctx, func() {
		for _, r := range s.book(id).byHash {
			if r.Phase == tx.Watched && bytes.Compare(r.Hash[:], after[:]) > 0 {
				found = append(found, r.Work)
			}
		}
	})
	slices.SortFunc(found, func(a, b tx.Work) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return found[:min(len(found), limit)], err
}

package embedded

import (
	"cmp"
	"context"
	"math"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Verdicts returns rows whose verdict rests on one of these blocks, lowest first and by hash
// within a block. Of block from it returns only rows with a hash above after.
func (w *Work) Verdicts(ctx context.Context, id chain.ID, phase tx.Phase, from, to uint64, after chain.Hash, limit int) ([]tx.Work, error) {
	return w.read(ctx, func(conn *sqlite.Conn, into *[]tx.Work) error {
		return rows(conn, into, `WHERE chain = ?1 AND phase = ?2 AND block_number BETWEEN ?3 AND ?4
			AND (block_number > ?3 OR hash > ?5) ORDER BY block_number, hash LIMIT ?6`,
			int64(id), string(phase), ordered(from), ordered(to), after[:], int64(limit))
	})
}

// expirings are rows that may expire.
const expirings = "expires_at AS due FROM work WHERE chain = ?1 AND phase IN ('open', 'watched') AND expires_at IS NOT NULL"

// expiringOf selects a client's expired rows, the earliest first.
func expiringOf() string {
	return "SELECT no, " + expirings + " AND client = ?2 AND expires_at <= ?3 ORDER BY expires_at, no LIMIT ?4"
}

// Expiring returns open and watched rows that have expired, of each client at most `each`. It finds
// one client after the other by an index, and each client's earliest rows, however many it has.
func (w *Work) Expiring(ctx context.Context, id chain.ID, time uint64, each, limit int) ([]tx.Work, error) {
	type found struct {
		place  int // among its client's rows
		at, no int64
	}
	return w.read(ctx, func(conn *sqlite.Conn, into *[]tx.Work) error {
		var all []found
		err := clientsOf(conn, id, expirings, func(client string, soonest int64) error {
			if soonest > ordered(time) {
				return nil
			}
			place := 0
			return query(conn, expiringOf(), func(s *sqlite.Stmt) bool {
				all = append(all, found{place, s.ColumnInt64(1), s.ColumnInt64(0)})
				place++
				return true
			}, int64(id), client, ordered(time), int64(each))
		})
		slices.SortFunc(all, func(a, b found) int {
			return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.at, b.at), cmp.Compare(a.no, b.no))
		})
		for _, f := range all[:min(len(all), limit)] {
			if err == nil {
				err = rows(conn, into, "WHERE no = ?1", f.no)
			}
		}
		return err
	})
}

// Watched returns watched rows with a hash above after, in the order of their hashes.
func (w *Work) Watched(ctx context.Context, id chain.ID, after chain.Hash, limit int) ([]tx.Work, error) {
	return w.read(ctx, func(conn *sqlite.Conn, into *[]tx.Work) error {
		return rows(conn, into, "WHERE chain = ? AND phase = 'watched' AND hash > ? ORDER BY hash LIMIT ?", int64(id), after[:], int64(limit))
	})
}

// Waiting returns sequences that wait, least recently checked first, and marks them checked.
func (w *Work) Waiting(ctx context.Context, id chain.ID, limit int) ([]chain.Sequence, error) {
	return write(ctx, w.file, "look at who waits", func(conn *sqlite.Conn) (found []chain.Sequence, err error) {
		known := map[chain.Sequence]bool{}
		// Rows of one sequence are adjacent, because they were checked together.
		err = query(conn, "SELECT sender, nonce_key FROM work WHERE chain = ? AND wait_nonce IS NOT NULL AND named_sender IS NULL ORDER BY seen",
			func(q *sqlite.Stmt) bool {
				if len(found) >= limit {
					return false
				}
				s := chain.Sequence{Chain: id}
				q.ColumnBytes(0, s.Sender[:])
				q.ColumnBytes(1, s.Key[:])
				if !known[s] {
					known[s], found = true, append(found, s)
				}
				return true
			}, int64(id))
		if err != nil {
			return nil, err
		}
		now := w.now()
		for _, s := range found {
			err := exec(conn, `UPDATE work SET seen = ?4
				WHERE chain = ?1 AND sender = ?2 AND nonce_key = ?3 AND wait_nonce IS NOT NULL AND named_sender IS NULL`,
				int64(id), s.Sender[:], s.Key[:], w.nextTurn(now))
			if err != nil {
				return nil, err
			}
		}
		return found, nil
	})
}

// Wake makes rows due whose awaited nonce the chain has reached, by the given next nonces.
func (w *Work) Wake(ctx context.Context, now map[chain.Sequence]uint64) (int, error) {
	if len(now) == 0 {
		return 0, nil
	}
	return write(ctx, w.file, "wake", func(conn *sqlite.Conn) (woken int, err error) {
		at := micros(w.now())
		for s, nonce := range now {
			err := exec(conn, `UPDATE work SET next_at = ?5
				WHERE chain = ?1 AND sender = ?2 AND nonce_key = ?3 AND wait_nonce <= ?4 AND next_at > ?5`,
				int64(s.Chain), s.Sender[:], s.Key[:], ordered(nonce), at)
			if err != nil {
				return 0, err
			}
			woken += conn.Changes()
		}
		return woken, nil
	})
}

// Advance makes rows due that are eligible by the chain's clock, though not yet by ours.
func (w *Work) Advance(ctx context.Context, id chain.ID, blockTime uint64) (int, error) {
	return write(ctx, w.file, "advance", func(conn *sqlite.Conn) (int, error) {
		now := w.now()
		err := exec(conn, `UPDATE work SET next_at = ?4
			WHERE chain = ?1 AND phase = 'open' AND attempts = 0 AND eligible_at > ?2 AND eligible_at <= ?3 AND next_at > ?4`,
			int64(id), ordered(uint64(now.Unix())), ordered(blockTime), micros(now))
		return conn.Changes(), err
	})
}

// DropSealed removes sealed rows below a block.
func (w *Work) DropSealed(ctx context.Context, id chain.ID, below uint64) (int, error) {
	return write(ctx, w.file, "drop sealed rows", func(conn *sqlite.Conn) (int, error) {
		err := exec(conn, "DELETE FROM work WHERE chain = ? AND phase = 'sealed' AND block_number < ?", int64(id), ordered(below))
		return conn.Changes(), err
	})
}

// Blocks returns the remembered blocks of a chain, lowest first.
func (w *Work) Blocks(ctx context.Context, id chain.ID) (blocks []chain.Block, err error) {
	err = w.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		blocks = nil
		return query(conn, "SELECT number, hash, parent, time FROM blocks WHERE chain = ? ORDER BY number", func(s *sqlite.Stmt) bool {
			b := chain.Block{Number: unordered(s.ColumnInt64(0)), Time: unordered(s.ColumnInt64(3))}
			s.ColumnBytes(1, b.Hash[:])
			s.ColumnBytes(2, b.Parent[:])
			blocks = append(blocks, b)
			return true
		}, int64(id))
	})
	return blocks, err
}

// Remember replaces the remembered blocks from the first of these upwards, and forgets those
// below keep.
func (w *Work) Remember(ctx context.Context, id chain.ID, blocks []chain.Block, keep uint64) error {
	_, err := write(ctx, w.file, "remember blocks", func(conn *sqlite.Conn) (struct{}, error) {
		from := int64(math.MaxInt64)
		if len(blocks) > 0 {
			from = ordered(blocks[0].Number)
		}
		err := exec(conn, "DELETE FROM blocks WHERE chain = ? AND (number >= ? OR number < ?)", int64(id), from, ordered(keep))
		if err != nil {
			return struct{}{}, err
		}
		for _, b := range blocks {
			if b.Number < keep {
				continue
			}
			err := exec(conn, "INSERT INTO blocks (chain, number, hash, parent, time) VALUES (?, ?, ?, ?, ?)",
				int64(id), ordered(b.Number), b.Hash[:], b.Parent[:], ordered(b.Time))
			if err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}

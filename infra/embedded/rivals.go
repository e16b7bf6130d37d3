package embedded

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// The rivals in a sequence: its own rows, and the rows that only claim to be of it.
const (
	ownRivals     = `FROM work WHERE chain = ? AND sender = ? AND nonce_key = ? AND phase IN ('open', 'watched') AND nonce < ?`
	claimedRivals = `FROM work WHERE chain = ? AND named_sender = ? AND named_key = ? AND phase IN ('open', 'watched') AND nonce < ?`
)

// Rivals returns open and watched rows of these sequences, but for the mined ones, with a
// nonce below the one given. limit is shared out among the sequences that have such rows;
// unread are the sequences with more rows than are returned.
func (w *Work) Rivals(ctx context.Context, used map[chain.Sequence]uint64, mined []chain.Hash, limit int) (found []tx.Work, unread []chain.Sequence, err error) {
	known := make(map[chain.Hash]bool, len(mined))
	for _, h := range mined {
		known[h] = true
	}
	var rows []tx.Work
	var each int
	err = w.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		rows = nil
		sequences, err := withRivals(conn, used, known)
		if err != nil {
			return err
		}
		var n int
		n, each = tx.ShareRivals(limit, len(sequences))
		unread = sequences[n:]
		for _, s := range sequences[:n] {
			if rows, err = rivalsOf(conn, rows, s, used[s], known, each+1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	found, more := tx.CutRivals(rows, each)
	return found, append(more, unread...), nil
}

// withRivals returns the sequences that have rivals, after all others the sequences with
// claims alone.
func withRivals(conn *sqlite.Conn, used map[chain.Sequence]uint64, mined map[chain.Hash]bool) ([]chain.Sequence, error) {
	var own, claimed []chain.Sequence
	for s, below := range used {
		for _, kind := range []struct {
			text string
			into *[]chain.Sequence
		}{{ownRivals, &own}, {claimedRivals, &claimed}} {
			has := false
			err := query(conn, "SELECT hash "+kind.text, func(q *sqlite.Stmt) bool {
				var h chain.Hash
				q.ColumnBytes(0, h[:])
				has = !mined[h]
				return !has
			}, int64(s.Chain), s.Sender[:], s.Key[:], ordered(below))
			if err != nil {
				return nil, err
			}
			if has {
				*kind.into = append(*kind.into, s)
				break
			}
		}
	}
	return append(own, claimed...), nil
}

// rivalsOf adds at most n rivals of one sequence to rows.
func rivalsOf(conn *sqlite.Conn, rows []tx.Work, s chain.Sequence, below uint64, mined map[chain.Hash]bool, n int) ([]tx.Work, error) {
	end := len(rows) + n
	for _, kind := range []string{ownRivals, claimedRivals} {
		if len(rows) >= end {
			break
		}
		err := query(conn, "SELECT "+workColumns+" "+kind, func(q *sqlite.Stmt) bool {
			if row := scanRow(q).Work; !mined[row.Hash] {
				rows = append(rows, row)
			}
			return len(rows) < end
		}, int64(s.Chain), s.Sender[:], s.Key[:], ordered(below))
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

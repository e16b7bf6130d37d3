package embedded

import (
	"context"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// sequenceRows returns the statement that reads the rows of a sequence, from a nonce on, by nonce,
// and whether each keeps its nonce used. Both parts have the order of their index and are merged, so
// a reader that stops has read no further row.
func sequenceRows() string {
	part := func(phase, used string) string {
		return `SELECT nonce, client, ` + used + ` FROM work WHERE chain = ?1 AND sender = ?2 AND nonce_key = ?3 AND phase = '` + phase + `' AND nonce >= ?4`
	}
	return part("open", "1") + " UNION ALL " + part("announced", "verdict = 'executed'") + " ORDER BY 1"
}

// NextFree is the first nonce of a sequence, from the given one on, that no open row and no row
// announced as executed has. Only rows first submitted by one of the clients count; nil counts
// all. It reads at most one row of each phase behind the first free nonce. Of further rows at a nonce
// that it has passed it reads one.
func (w *Work) NextFree(ctx context.Context, s chain.Sequence, from uint64, clients []string) (uint64, error) {
	next, text := from, sequenceRows()
	err := w.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		next = from
		for again := true; again; {
			again = false
			err := query(conn, text, func(q *sqlite.Stmt) bool {
				switch nonce := unordered(q.ColumnInt64(0)); {
				case nonce > next: // a gap
					return false
				case nonce < next: // another row at a nonce that is passed: skip all of these
					again = true
					return false
				case q.ColumnInt64(2) != 0 && (clients == nil || slices.Contains(clients, q.ColumnText(1))):
					next++
				}
				return true
			}, int64(s.Chain), s.Sender[:], s.Key[:], ordered(next))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return next, err
}

package embedded

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// NextFree is the first nonce of a sequence, from the given one on, that no open row and no row
// announced as executed has. Only rows first submitted by one of the clients count; nil counts
// all.
func (w *Work) NextFree(ctx context.Context, s chain.Sequence, from uint64, clients []string) (uint64, error) {
	next := from
	narrow, args := "", []any{int64(s.Chain), s.Sender[:], s.Key[:], ordered(from)}
	if clients != nil {
		narrow = ` AND client IN (` + marks(len(clients)) + `)`
		for _, c := range clients {
			args = append(args, c)
		}
	}
	err := w.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		next = from
		return query(conn, `SELECT nonce FROM work WHERE chain = ? AND sender = ? AND nonce_key = ? AND nonce >= ?
			AND phase IN ('open', 'announced') AND (phase = 'open' OR verdict = 'executed')`+narrow+` ORDER BY nonce`,
			func(q *sqlite.Stmt) bool {
				nonce := unordered(q.ColumnInt64(0))
				if nonce == next {
					next++
				}
				return nonce < next // otherwise there is a gap
			}, args...)
	})
	return next, err
}

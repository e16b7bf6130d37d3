package embedded

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Usage returns a client's usage of the queue, and the checkpoint of the reader that feeds the
// queue, as of one moment.
func (w *Work) Usage(ctx context.Context, reader, client string) (u tx.Usage, at eventlog.Position, err error) {
	err = w.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		u, at = tx.Usage{}, 0
		return query(conn, `SELECT coalesce(c.waiting, 0), coalesce(c.bytes, 0), coalesce(r.position, 0) FROM (SELECT 1)
			LEFT JOIN work_clients c ON c.client = ? LEFT JOIN checkpoints r ON r.reader = ?`,
			func(s *sqlite.Stmt) bool {
				u, at = tx.Usage{Transactions: s.ColumnInt64(0), Bytes: s.ColumnInt64(1)}, eventlog.Position(s.ColumnInt64(2))
				return false
			}, client, reader)
	})
	return u, at, err
}

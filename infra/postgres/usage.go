package postgres

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Usage returns a client's usage of the queue, and the checkpoint of the reader that feeds the
// queue, as of one moment.
func (s *Work) Usage(ctx context.Context, reader, client string) (u tx.Usage, at eventlog.Position, err error) {
	err = retry(ctx, func() error {
		var pos int64
		err := s.pool.QueryRow(ctx, `SELECT coalesce(c.waiting, 0), coalesce(c.bytes, 0), coalesce(r.pos, 0)
			FROM (SELECT $1::text AS reader, $2::text AS client) asked
			LEFT JOIN work.queue_clients c ON c.client = asked.client LEFT JOIN work.checkpoints r ON r.reader = asked.reader`,
			reader, client).Scan(&u.Transactions, &u.Bytes, &pos)
		at = eventlog.Position(pos)
		return err
	})
	return u, at, err
}

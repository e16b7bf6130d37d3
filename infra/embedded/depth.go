package embedded

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Depth counts the rows of a chain. It reads all of them.
func (w *Work) Depth(ctx context.Context, id chain.ID) (d tx.Depth, err error) {
	now := micros(w.now())
	err = w.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		return query(conn, `SELECT
			count(*) FILTER (WHERE phase = 'open' AND parked = 0),
			count(*) FILTER (WHERE phase = 'open' AND parked = 0 AND wait_nonce IS NOT NULL),
			count(*) FILTER (WHERE phase = 'open' AND parked <> 0),
			count(*) FILTER (WHERE phase = 'open' AND attempts > 0),
			count(*) FILTER (WHERE phase = 'watched'),
			count(*) FILTER (WHERE phase = 'announced'),
			count(*) FILTER (WHERE phase = 'sealed'),
			count(*) FILTER (WHERE phase = 'open' AND parked = 0 AND due <= ?2),
			coalesce(?2 - min(due) FILTER (WHERE phase = 'open' AND parked = 0 AND due <= ?2), 0)
			FROM work WHERE chain = ?1`,
			func(s *sqlite.Stmt) bool {
				for i, into := range []*int{&d.Open, &d.Waiting, &d.Parked, &d.Sent, &d.Watched, &d.Announced, &d.Sealed, &d.Due} {
					*into = s.ColumnInt(i)
				}
				d.OldestDue = time.Duration(s.ColumnInt64(8)) * time.Microsecond
				return false
			}, int64(id), now)
	})
	return d, err
}

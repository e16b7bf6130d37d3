package postgres

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// One pass over the chain's rows; callers run it rarely.
const depthOfWork = `
SELECT count(*) FILTER (WHERE phase = 'open' AND NOT parked),
       count(*) FILTER (WHERE phase = 'open' AND NOT parked AND wait_nonce IS NOT NULL),
       count(*) FILTER (WHERE phase = 'open' AND parked),
       count(*) FILTER (WHERE phase = 'open' AND attempts > 0),
       count(*) FILTER (WHERE phase = 'watched'),
       count(*) FILTER (WHERE phase = 'announced'),
       count(*) FILTER (WHERE phase = 'sealed'),
       count(*) FILTER (WHERE phase = 'open' AND NOT parked AND holder IS NULL AND next_at <= now.is),
       coalesce(max(now.is - next_at) FILTER (WHERE phase = 'open' AND NOT parked AND holder IS NULL AND next_at <= now.is), '0')
FROM (SELECT clock_timestamp() AS is) now LEFT JOIN work.queue ON chain = $1`

// Depth counts the rows of a chain. It reads all of them.
func (s *Work) Depth(ctx context.Context, id chain.ID) (d tx.Depth, err error) {
	return d, retry(ctx, func() error {
		var oldest time.Duration
		err := s.pool.QueryRow(ctx, depthOfWork, int64(id)).
			Scan(&d.Open, &d.Waiting, &d.Parked, &d.Sent, &d.Watched, &d.Announced, &d.Sealed, &d.Due, &oldest)
		d.OldestDue = oldest
		return err
	})
}

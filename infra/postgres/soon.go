package postgres

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Soon returns the unleased rows of a chain that are due next, soonest first.
func (s *Work) Soon(ctx context.Context, id chain.ID, limit int) ([]tx.Work, error) {
	return s.rows(ctx, `SELECT `+workColumns+` FROM work.queue q
		WHERE q.chain = $1 AND q.phase = 'open' AND NOT q.parked AND q.holder IS NULL
		ORDER BY q.next_at LIMIT $2`, int64(id), max(limit, 0))
}

package embedded

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Soon returns the rows of a chain that are due next, soonest first. A leased row counts as due
// when its lease ends.
func (w *Work) Soon(ctx context.Context, id chain.ID, limit int) ([]tx.Work, error) {
	return w.read(ctx, func(conn *sqlite.Conn, into *[]tx.Work) error {
		return rows(conn, into, "WHERE chain = ? AND phase = 'open' AND parked = 0 ORDER BY due LIMIT ?",
			int64(id), int64(max(limit, 0)))
	})
}

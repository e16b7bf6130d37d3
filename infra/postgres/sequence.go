package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

const (
	// sequencePage is the number of rows that a query for the next free nonce reads at first.
	sequencePage = 256
	// sequenceGrowth is the factor for the next query's rows if none of the rows read counts: all
	// are at one nonce.
	sequenceGrowth = 8
)

// sequenceRows returns the statement that reads the first $4 rows of a sequence, from a nonce on, by
// nonce, and whether each keeps its nonce used by one of the clients $3. Each part has the order of
// the index queue_sequence, so it reads no further row.
func sequenceRows() string {
	part := func(used, rows string) string {
		return `(SELECT nonce, client, ` + used + ` AS used FROM work.queue
			WHERE sequence = $1 AND ` + rows + ` AND nonce >= $2 ORDER BY nonce LIMIT $4)`
	}
	return `SELECT nonce, used AND ($3::text[] IS NULL OR client = ANY ($3)) FROM (` +
		part("true", "phase = 'open' AND NOT parked") + " UNION ALL " +
		part("true", "phase = 'open' AND parked") + " UNION ALL " +
		part("verdict = 'executed'", "phase = 'announced' AND NOT parked") + `) r ORDER BY nonce LIMIT $4`
}

// sequenceRow is a row of a sequence, and whether it keeps its nonce used.
type sequenceRow struct {
	Nonce  int64
	Counts bool
}

// NextFree is the first nonce of a sequence, from the given one on, that no open row and no row
// announced as executed has. Only rows first submitted by one of the clients count; nil counts
// all. It reads few rows behind the first free nonce: less than a page of each kind.
func (s *Work) NextFree(ctx context.Context, sequence chain.Sequence, from uint64, clients []string) (uint64, error) {
	next, limit, text := from, sequencePage, sequenceRows()
	for {
		var page []sequenceRow
		err := retry(ctx, func() error {
			rows, err := s.pool.Query(ctx, text, sequenceID(sequence), flip(next), clients, limit)
			if err == nil {
				page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[sequenceRow])
			}
			return err
		})
		if err != nil {
			return next, err
		}
		before := next
		for _, r := range page {
			switch nonce := unflip(r.Nonce); {
			case nonce > next: // a gap
				return next, nil
			case nonce == next && r.Counts:
				next++
			}
		}
		switch {
		case len(page) < limit:
			return next, nil
		case next == before:
			limit *= sequenceGrowth
		default:
			limit = sequencePage
		}
	}
}

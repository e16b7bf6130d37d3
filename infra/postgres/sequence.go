package postgres

import (
	"context"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// NextFree is the first nonce of a sequence, from the given one on, that no open row and no row
// announced as executed has. Only rows first submitted by one of the clients count; nil counts
// all.
func (s *Work) NextFree(ctx context.Context, sequence chain.Sequence, from uint64, clients []string) (next uint64, err error) {
	err = retry(ctx, func() error {
		next = from
		rows, err := s.pool.Query(ctx, `SELECT nonce FROM work.queue WHERE sequence = $1 AND nonce >= $2
			AND phase IN ('open', 'announced') AND (phase = 'open' OR verdict = 'executed')
			AND ($3::text[] IS NULL OR client = ANY ($3)) ORDER BY nonce`, sequenceID(sequence), flip(from), clients)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var stored int64
			if err := rows.Scan(&stored); err != nil {
				return err
			}
			nonce := unflip(stored)
			if nonce > next {
				return nil // a gap
			}
			if nonce == next {
				next++
			}
		}
		return rows.Err()
	})
	return next, err
}

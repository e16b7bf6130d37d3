package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

const (
	// belowUsed ends a query of rivals. Its order is that of the index: the limit alone would
	// have the planner read the table when few sequences have most of the rows.
	belowUsed = ` AND nonce < u.below AND hash <> ALL ($3::bytea[]) ORDER BY nonce LIMIT $4)`

	// rivalsOf reads the rivals in the sequence u.sequence, at most $4 of each kind: its own
	// rows, and the rows that only claim to be of it.
	rivalsOf = `(
	  (SELECT * FROM work.queue WHERE sequence = u.sequence AND phase = 'open' AND NOT parked` + belowUsed + `
	  UNION ALL
	  (SELECT * FROM work.queue WHERE sequence = u.sequence AND phase = 'open' AND parked` + belowUsed + `
	  UNION ALL
	  (SELECT * FROM work.queue WHERE sequence = u.sequence AND phase = 'watched' AND NOT parked` + belowUsed + `
	  UNION ALL
	  (SELECT * FROM work.queue WHERE named = u.sequence AND phase IN ('open', 'watched')` + belowUsed + `
	)`

	// sequencesWithRivals reads the places of the sequences that have rivals, after all
	// others the sequences with claims alone. $4 is 1.
	sequencesWithRivals = `SELECT u.place::integer - 1 FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY u (sequence, below, place)
	CROSS JOIN LATERAL (SELECT named FROM ` + rivalsOf + ` r ORDER BY named IS NOT NULL LIMIT 1) q ORDER BY q.named IS NOT NULL`

	readRivals = `SELECT ` + workColumns + ` FROM unnest($1::uuid[], $2::bigint[]) u (sequence, below)
	CROSS JOIN LATERAL (SELECT * FROM ` + rivalsOf + ` r ORDER BY named IS NOT NULL LIMIT $4) q`
)

// Rivals returns open and watched rows of these sequences, but for the mined ones, with a
// nonce below the one given. limit is shared out among the sequences that have such rows;
// unread are the sequences with more rows than are returned.
func (s *Work) Rivals(ctx context.Context, used map[chain.Sequence]uint64, mined []chain.Hash, limit int) (found []tx.Work, unread []chain.Sequence, err error) {
	if len(used) == 0 {
		return nil, nil, nil
	}
	sequences, err := s.withRivals(ctx, used, mined)
	if err != nil || len(sequences) == 0 {
		return nil, nil, err
	}
	n, each := tx.ShareRivals(limit, len(sequences))
	unread = sequences[n:]
	if n == 0 {
		return nil, unread, nil
	}
	read := make(map[chain.Sequence]uint64, n)
	for _, q := range sequences[:n] {
		read[q] = used[q]
	}
	id, below, _ := perSequence(read)
	rows, err := s.rows(ctx, readRivals, id, below, bytesOf(mined), each+1)
	if err != nil {
		return nil, nil, err
	}
	found, more := tx.CutRivals(rows, each)
	return found, append(more, unread...), nil
}

// withRivals returns the sequences that have rivals.
func (s *Work) withRivals(ctx context.Context, used map[chain.Sequence]uint64, mined []chain.Hash) (sequences []chain.Sequence, err error) {
	asked := slices.Collect(maps.Keys(used))
	id, below := make([]pgtype.UUID, len(asked)), make([]int64, len(asked))
	for i, q := range asked {
		id[i], below[i] = sequenceID(q), flip(used[q])
	}
	err = retry(ctx, func() error {
		sequences = nil
		rows, err := s.pool.Query(ctx, sequencesWithRivals, id, below, bytesOf(mined), 1)
		if err != nil {
			return err
		}
		places, err := pgx.CollectRows(rows, pgx.RowTo[int32])
		for _, place := range places {
			sequences = append(sequences, asked[place])
		}
		return err
	})
	return sequences, err
}

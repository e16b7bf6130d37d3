package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Blocks returns the remembered canonical blocks, lowest first.
func (s *Work) Blocks(ctx context.Context, id chain.ID) (blocks []chain.Block, err error) {
	err = retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, `SELECT number, hash, parent, time FROM work.blocks WHERE chain = $1 ORDER BY number`,
			int64(id))
		if err != nil {
			return err
		}
		blocks, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b chain.Block, err error) {
			var number, time int64
			var hash, parent []byte
			err = row.Scan(&number, &hash, &parent, &time)
			b.Number, b.Time = unflip(number), unflip(time)
			copy(b.Hash[:], hash)
			copy(b.Parent[:], parent)
			return b, err
		})
		return err
	})
	return blocks, err
}

// Remember replaces the remembered blocks from the first of these upwards, and forgets those
// below keep.
func (s *Work) Remember(ctx context.Context, id chain.ID, blocks []chain.Block, keep uint64) error {
	var number, time []int64
	var hash, parent [][]byte
	for _, b := range blocks {
		number, time = append(number, flip(b.Number)), append(time, flip(b.Time))
		hash, parent = append(hash, b.Hash[:]), append(parent, b.Parent[:])
	}
	return retry(ctx, func() error {
		q := &pgx.Batch{} // one implicit transaction
		if len(blocks) > 0 {
			q.Queue(`DELETE FROM work.blocks WHERE chain = $1 AND number >= $2`, int64(id), number[0])
			q.Queue(`INSERT INTO work.blocks (chain, number, hash, parent, time)
				SELECT $1, u.* FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bigint[]) u
				ON CONFLICT (chain, number) DO UPDATE SET hash = excluded.hash, parent = excluded.parent, time = excluded.time`,
				int64(id), number, hash, parent, time)
		}
		q.Queue(`DELETE FROM work.blocks WHERE chain = $1 AND number < $2`, int64(id), flip(keep))
		return s.pool.SendBatch(ctx, q).Close()
	})
}

// counted stores the number of rows that a statement affected.
func counted(n *int) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		*n = int(tag.RowsAffected())
		return nil
	}
}

package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Checkpoints stores readers' positions. A crash of the server may undo the last moves of a
// checkpoint; its reader then repeats that work.
type Checkpoints struct{ pool *pgxpool.Pool }

// Checkpoint is a reader's position; 0 if it never moved.
func (s *Checkpoints) Checkpoint(ctx context.Context, reader string) (eventlog.Position, error) {
	var pos int64
	err := retry(ctx, func() error {
		return s.pool.QueryRow(ctx, `SELECT pos FROM work.checkpoints WHERE reader = $1`, reader).Scan(&pos)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return eventlog.Position(pos), err
}

// MoveCheckpoint is a compare-and-set: eventlog.ErrMoved if the checkpoint is not at from. After
// eventlog.ErrUnknown the reader must read its checkpoint.
func (s *Checkpoints) MoveCheckpoint(ctx context.Context, reader string, from, to eventlog.Position) error {
	return retryRefused(ctx, func() error { return moveCheckpoint(ctx, s.pool, reader, from, to) })
}

// execer is a pool or a database transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func moveCheckpoint(ctx context.Context, db execer, reader string, from, to eventlog.Position) error {
	sql := `UPDATE work.checkpoints SET pos = $3 WHERE reader = $1 AND pos = $2`
	if from == 0 { // the row may not exist yet
		sql = `INSERT INTO work.checkpoints AS c (reader, pos) VALUES ($1, $3)
			ON CONFLICT (reader) DO UPDATE SET pos = $3 WHERE c.pos = $2`
	}
	tag, err := db.Exec(ctx, sql, reader, clamp(uint64(from)), clamp(uint64(to)))
	if err == nil && tag.RowsAffected() == 0 {
		err = eventlog.ErrMoved
	}
	return err
}

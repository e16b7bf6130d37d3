package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Snapshots stores folded states, one per stream. A crash of the server may lose the newest.
type Snapshots struct{ pool *pgxpool.Pool }

// Snapshot returns a stream's snapshot; ok is false if there is none.
func (s *Snapshots) Snapshot(ctx context.Context, stream eventlog.Stream) (found eventlog.Snapshot, ok bool, err error) {
	var version, pos int64
	var link []byte
	err = retry(ctx, func() error {
		return s.pool.QueryRow(ctx, `SELECT version, pos, link, schema, data FROM work.snapshots WHERE stream = $1`, string(stream)).
			Scan(&version, &pos, &link, &found.Schema, &found.Data)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return eventlog.Snapshot{}, false, nil
	}
	found.Stream, found.Version, found.Position = stream, eventlog.Version(version), eventlog.Position(pos)
	copy(found.Link[:], link)
	return found, err == nil && len(link) == len(found.Link), err
}

// KeepSnapshot replaces the stream's snapshot.
func (s *Snapshots) KeepSnapshot(ctx context.Context, kept eventlog.Snapshot) error {
	return retryRefused(ctx, func() error {
		_, err := s.pool.Exec(ctx, `INSERT INTO work.snapshots (stream, version, pos, link, schema, data) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (stream) DO UPDATE SET version = $2, pos = $3, link = $4, schema = $5, data = $6`,
			string(kept.Stream), clamp(uint64(kept.Version)), clamp(uint64(kept.Position)), kept.Link[:], kept.Schema, notNull(kept.Data))
		return err
	})
}

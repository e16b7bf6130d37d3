package embedded

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Snapshots stores folded states in work.db, one per stream.
type Snapshots struct{ work *Work }

// Snapshot returns a stream's snapshot; ok is false if there is none.
func (s Snapshots) Snapshot(ctx context.Context, stream eventlog.Stream) (found eventlog.Snapshot, ok bool, err error) {
	err = s.work.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		return query(conn, `SELECT version, pos, link, schema, data FROM snapshots WHERE stream = ?`, func(row *sqlite.Stmt) bool {
			found = eventlog.Snapshot{
				Stream: stream, Version: eventlog.Version(row.ColumnInt64(0)), Position: eventlog.Position(row.ColumnInt64(1)),
				Schema: row.ColumnInt(3), Data: columnBytes(row, 4),
			}
			ok = row.ColumnBytes(2, found.Link[:]) == len(found.Link)
			return false
		}, string(stream))
	})
	if err != nil {
		return eventlog.Snapshot{}, false, fmt.Errorf("snapshot of %s: %w", stream, err)
	}
	return found, ok, nil
}

// KeepSnapshot replaces the stream's snapshot.
func (s Snapshots) KeepSnapshot(ctx context.Context, kept eventlog.Snapshot) error {
	_, err := write(ctx, s.work.file, "keep snapshot", func(conn *sqlite.Conn) (struct{}, error) {
		return struct{}{}, exec(conn, `INSERT OR REPLACE INTO snapshots (stream, version, pos, link, schema, data) VALUES (?, ?, ?, ?, ?, ?)`,
			string(kept.Stream), int64(kept.Version), int64(kept.Position), kept.Link[:], int64(kept.Schema), kept.Data)
	})
	return err
}

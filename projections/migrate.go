package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
)

// Migrate brings the read models' tables up to date: each file is run once, in order of the
// names. Several replicas may call it at once.
func Migrate(ctx context.Context, db *sql.DB, files fs.FS) error {
	const table = `CREATE TABLE IF NOT EXISTS view_migrations (name text PRIMARY KEY)`
	if _, err := db.ExecContext(ctx, table); err != nil {
		// If two replicas create the table at once, Postgres may fail one; then the table
		// exists.
		if _, again := db.ExecContext(ctx, table); again != nil {
			return fmt.Errorf("view migrations: %w", errors.Join(err, again))
		}
	}
	names, err := fs.Glob(files, "view/*.sql")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := migrate(ctx, db, files, name); err != nil {
			return fmt.Errorf("view migration %s: %w", name, err)
		}
	}
	return nil
}

func migrate(ctx context.Context, db *sql.DB, files fs.FS, name string) error {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	dbtx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer dbtx.Rollback() //nolint:errcheck // after a commit it does nothing
	// The insert makes a second replica wait here until the first has committed.
	done, err := dbtx.ExecContext(ctx, `INSERT INTO view_migrations (name) VALUES ($1) ON CONFLICT (name) DO NOTHING`, name)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	if _, err := dbtx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	return dbtx.Commit()
}

package main_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
)

// fill appends n events; n is a multiple of 100.
func fill(t *testing.T, log port.Store, n int) {
	t.Helper()
	for last := eventlog.Version(0); int(last) < n; {
		events := make([]eventlog.Event, 100)
		for i := range events {
			events[i] = eventlog.Event{ID: eventlog.DeriveID("test-1", eventlog.ID{1}, int(last)+i), Name: "test.happened.v1", Data: []byte("{}")}
		}
		appended, err := log.Append(t.Context(), "test-1", last, events...)
		check(t, err)
		last = appended.Version
	}
}

// A dry run reports the plan and changes nothing. That holds for a store in use, a read-only
// store, a store of an older version, and a missing store.
func TestArchiveDryRun(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "data")
		w := &world{ctx: t.Context(), store: []string{"--store", "embedded:" + dir}}
		w.dryRuns(t, "stat "+dir, 1)
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("a dry run has made the folder: %v", err)
		}

		db, err := embedded.Open(dir, embedded.Options{})
		check(t, err)
		fill(t, db.Log(), 1100)
		w.dryRuns(t, "would store positions 501 to 1000", 0) // a service is running on it
		check(t, db.Close())
		w.archived(t)

		log, err := sql.Open("sqlite", filepath.Join(dir, "events.db"))
		check(t, err)
		for _, text := range []string{
			"DROP TABLE segments", "DROP TABLE beginning", "ALTER TABLE streams DROP COLUMN archived",
			"ALTER TABLE streams DROP COLUMN archived_from", "ALTER TABLE streams DROP COLUMN archived_to", "PRAGMA user_version = 2",
		} {
			_, err := log.ExecContext(w.ctx, text)
			check(t, err)
		}
		check(t, log.Close())
		w.dryRuns(t, "older than this program", 1)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn := testenv.Postgres(t)
		w := &world{ctx: t.Context(), store: []string{"--store", dsn}}
		conn, err := pgx.Connect(w.ctx, dsn)
		check(t, err)
		t.Cleanup(func() { check(t, conn.Close(context.Background())) })
		execute := func(texts ...string) {
			for _, text := range texts {
				_, err := conn.Exec(w.ctx, text)
				check(t, err)
			}
		}
		w.dryRuns(t, "watchtower migrate", 1)
		var schemas int
		check(t, conn.QueryRow(w.ctx, "SELECT count(*) FROM pg_namespace WHERE nspname IN ('log', 'work', 'view')").Scan(&schemas))
		if schemas > 0 {
			t.Error("a dry run has made tables")
		}

		db, err := postgres.Open(w.ctx, dsn, postgres.Options{Partition: 500})
		check(t, err)
		check(t, db.Migrate(w.ctx))
		check(t, projections.Migrate(w.ctx, db.View(), migrations.View))
		fill(t, db.Log, 1100)
		check(t, db.Close(w.ctx))
		name := conn.Config().Database
		execute("ALTER DATABASE " + name + " SET default_transaction_read_only = on")
		w.dryRuns(t, "would store positions 501 to 1000", 0)
		execute("SET default_transaction_read_only = off", "ALTER DATABASE "+name+" RESET default_transaction_read_only")
		w.archived(t)

		execute("DROP TABLE log.segments", "DELETE FROM log.migrations WHERE version = 10")
		w.dryRuns(t, "older than this program", 1)
	})
}

// archivedEnv makes events move at once, 500 per segment.
func archivedEnv(dir string) []string {
	return []string{
		"WATCHTOWER_ARCHIVE=file:" + dir, "WATCHTOWER_RETENTION_EVENTS=0s",
		"WATCHTOWER_RETENTION_SEGMENT=500", "WATCHTOWER_RETENTION_PARTITION=500",
	}
}

// dryRuns runs the archive's dry run on a store that has dropped nothing, and checks that
// nothing changes.
func (w *world) dryRuns(t *testing.T, says string, status int) {
	t.Helper()
	env := archivedEnv(t.TempDir())
	w.unchanged(t, says, status, env, "archive", "run", "--dry-run")
	if status == 0 {
		says, status = "the store already has these events", 1
	}
	w.unchanged(t, says, status, env, "archive", "restore", "--from", "5", "--dry-run")
	if says == "the store already has these events" {
		w.unchanged(t, "position 1101 does not exist yet: the log ends at 1100", 1, env, "archive", "restore", "--from", "1101", "--dry-run")
	}
}

// archived moves events, and checks the dry run of a restore.
func (w *world) archived(t *testing.T) {
	t.Helper()
	env := archivedEnv(t.TempDir())
	if out, status := w.command(t, env, "archive", "run"); status != 0 || !strings.Contains(out, "begins at position 1001\n") {
		t.Fatalf("archive run ended with %d: %s", status, out)
	}
	w.unchanged(t, "the store's log begins at position 1001, and would begin at position 1001 at most", 0, env, "archive", "run", "--dry-run")
	w.unchanged(t, "would restore positions 501 to 1000\n", 0, env, "archive", "restore", "--from", "777", "--dry-run")
	w.unchanged(t, "would restore positions 1 to 1000\n", 0, env, "archive", "restore", "--from", "5", "--dry-run")
}

// unchanged runs a command that must not change the store.
func (w *world) unchanged(t *testing.T, says string, status int, env []string, args ...string) {
	t.Helper()
	before := w.held(t)
	out, got := w.command(t, env, args...)
	if got != status || !strings.Contains(out, says) {
		t.Errorf("%v ended with %d, want %d and %q: %s", args, got, status, says, out)
	}
	if w.changed(before, w.held(t)) {
		t.Errorf("%v has changed the store", args)
	}
}

// held returns the stored data; the store may be missing.
func (w *world) held(t *testing.T) map[string][]byte {
	t.Helper()
	dir, dsn := w.engine()
	if dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return nil
		}
		return w.data(t)
	}
	conn, err := pgx.Connect(w.ctx, dsn)
	check(t, err)
	defer conn.Close(context.Background()) //nolint:errcheck // the test is over with it
	tables := 0
	check(t, conn.QueryRow(w.ctx, "SELECT count(*) FROM pg_tables WHERE schemaname IN ('log', 'work', 'view')").Scan(&tables))
	if tables == 0 {
		return nil
	}
	all := w.data(t)
	all["how many"] = fmt.Append(nil, tables)
	return all
}

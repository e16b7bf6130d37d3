package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// things makes a read model with one table, at position 5 and with the row 0.
func things(t *testing.T) *opener {
	t.Helper()
	op := open(t, postgres.Options{})
	must(t, makeThings(soon(t), op.db.View()))
	_, err := op.db.View().ExecContext(soon(t), `INSERT INTO readers VALUES ('things', 5); INSERT INTO things VALUES (0)`)
	must(t, err)
	return op
}

func makeThings(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS view_migrations (name text PRIMARY KEY);
		CREATE TABLE IF NOT EXISTS readers (name text PRIMARY KEY, position bigint NOT NULL);
		CREATE TABLE IF NOT EXISTS things (n bigint PRIMARY KEY)`)
	return err
}

// shadowOf opens the shadow of things with one row. The test's cleanup closes it.
func shadowOf(t *testing.T, url string, row int64) *postgres.Shadow {
	t.Helper()
	s, err := postgres.OpenShadow(soon(t), url, "things", 1, []string{"things"}, makeThings)
	must(t, err)
	must(t, s.Prepare(soon(t), true))
	must(t, s.Load(soon(t), 0, 5, []bulk.Change{{Table: "things", Columns: []string{"n"}, Key: 1, New: [][]any{{row}}}}))
	return s
}

func rowsOf(t *testing.T, op *opener) (rows, first int64) {
	t.Helper()
	must(t, op.db.View().QueryRowContext(soon(t), `SELECT count(*), coalesce(min(n), -1) FROM things`).Scan(&rows, &first))
	return rows, first
}

// nothingLeft is for a swap without remaining events.
func nothingLeft(_ *sql.Tx, own, _ eventlog.Position) (eventlog.Position, error) { return own, nil }

// The swap returns the true outcome, whichever answer of the server is lost.
func TestSwapLosesReplies(t *testing.T) {
	op := things(t)
	p, url := through(t, op.url)
	for pieces, lost := 0, true; lost; pieces++ {
		s := shadowOf(t, url, int64(pieces)+1)
		err := s.Swap(soon(t), func(dbtx *sql.Tx, own, live eventlog.Position) (eventlog.Position, error) {
			p.loseAfter(pieces, reply)
			return nothingLeft(dbtx, own, live)
		})
		lost = p.lost()
		p.lose(nothing)
		must(t, s.Close())
		_, first := rowsOf(t, op)
		stands := first == int64(pieces)+1
		if stands != (err == nil) && !errors.Is(err, eventlog.ErrUnknown) {
			t.Errorf("cut after %d pieces the swap says %v; it stands: %v", pieces, err, stands)
		}
	}
}

// A process that has lost the shadow to another does not swap in the other's tables.
func TestSwapOfALostShadow(t *testing.T) {
	op := things(t)
	s := shadowOf(t, op.url, 1)
	defer func() { must(t, s.Close()) }()
	_, err := op.db.View().ExecContext(soon(t), `SELECT pg_terminate_backend(pid, 10000) FROM pg_locks
		WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	must(t, err)
	other := shadowOf(t, op.url, 2)
	defer func() { must(t, other.Close()) }()
	must(t, other.Prepare(soon(t), true))
	if err := s.Swap(soon(t), nothingLeft); err == nil {
		t.Error("it is swapped in")
	}
	if rows, first := rowsOf(t, op); rows != 1 || first != 0 {
		t.Errorf("%d rows, the first is %d", rows, first)
	}
}

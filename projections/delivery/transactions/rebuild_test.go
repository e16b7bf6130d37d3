package transactions_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

// shadow has the methods that both engines' shadows share.
type shadow interface {
	projections.Shadow
	Close() error
}

// shadowed runs a test on every engine, with the serving tables and a function that opens the
// shadow.
func shadowed(t *testing.T, test func(t *testing.T, live *sql.DB, open func(t *testing.T) shadow)) {
	migrated(t, func(t *testing.T, live *sql.DB, open func(t *testing.T, files fs.FS, version int) shadow) {
		test(t, live, func(t *testing.T) shadow { return open(t, migrations.View, 1) })
	})
}

// migrated is shadowed for a shadow with tables of other migrations, or of another version.
func migrated(t *testing.T, test func(t *testing.T, live *sql.DB, open func(t *testing.T, files fs.FS, version int) shadow)) {
	tables := []string{"transactions"}
	t.Run("embedded", func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close()) })
		test(t, migrate(t, db.View()), func(t *testing.T, _ fs.FS, version int) shadow {
			s, err := embedded.OpenShadow(t.Context(), db.Dir(), transactions.Name, version, tables)
			check(t, err)
			return s
		})
	})
	t.Run("postgres", func(t *testing.T) {
		url := testenv.Postgres(t)
		db, err := postgres.Open(t.Context(), url, postgres.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close(context.Background())) })
		check(t, db.Migrate(t.Context()))
		test(t, migrate(t, db.View()), func(t *testing.T, files fs.FS, version int) shadow {
			s, err := postgres.OpenShadow(t.Context(), url, transactions.Name, version, tables, func(ctx context.Context, own *sql.DB) error {
				return projections.Migrate(ctx, own, files)
			})
			check(t, err)
			return s
		})
	})
}

// few is a log that returns a few events per read.
type few struct {
	*embedded.Log
	most int
}

func (f few) ReadAll(ctx context.Context, after eventlog.Position, filter eventlog.Filter, _ int) iter.Seq2[eventlog.Batch, error] {
	return f.Log.ReadAll(ctx, after, filter, f.most)
}

func (h *history) rebuild(s projections.Shadow) *projections.Rebuild {
	return &projections.Rebuild{Model: transactions.Model(tx.Codec()), Log: few{h.log, 3}, Shadow: s, Heap: 5}
}

// schema is the tables and indexes as the engine describes them.
func schema(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY name`)
	if err != nil {
		rows, err = db.QueryContext(t.Context(), `SELECT indexdef FROM pg_indexes WHERE schemaname LIKE 'view%' ORDER BY indexdef`)
	}
	check(t, err)
	defer rows.Close() //nolint:errcheck // Err tells
	var all []string
	for rows.Next() {
		var line string
		check(t, rows.Scan(&line))
		all = append(all, line)
	}
	check(t, rows.Err())
	return strings.Join(all, "\n")
}

// A read model with lost or wrong rows is rebuilt in batches, beside the serving tables, with
// rows that are needed again after they were evicted. The result equals a projector's, with the
// same schema, and the projector continues from there.
func TestRebuild(t *testing.T) {
	shadowed(t, func(t *testing.T, live *sql.DB, open func(t *testing.T) shadow) {
		h := newHistory(t)
		const lives = 70
		for n := range lives {
			h.live(t, n)
		}
		h.project(t, live)
		want, before := dump(t, live), schema(t, live)
		for round, damage := range []string{
			`DELETE FROM transactions`, `UPDATE transactions SET status = 'expired', data = '{}'`, `UPDATE readers SET position = 0`,
		} {
			_, err := live.ExecContext(t.Context(), damage)
			check(t, err)
			s := open(t)
			told, err := h.rebuild(s).Run(t.Context())
			check(t, err)
			check(t, s.Close())
			if d := cmp.Diff(want, dump(t, live)); d != "" {
				t.Errorf("after %s (-live +rebuilt):\n%s", damage, d)
			}
			if d := cmp.Diff(before, schema(t, live)); d != "" {
				t.Errorf("the schema has changed:\n%s", d)
			}
			if told.Events == 0 || told.Position != told.Head || told.Rows == 0 {
				t.Errorf("it says %+v", told)
			}
			h.live(t, lives+round) // and the projector continues
			h.project(t, live)
			want = dump(t, live)
		}
	})
}

// A rebuild that is killed at any point resumes where it was.
func TestRebuildIsKilled(t *testing.T) {
	shadowed(t, func(t *testing.T, live *sql.DB, open func(t *testing.T) shadow) {
		h := newHistory(t)
		for n := range 35 {
			h.live(t, n)
		}
		h.project(t, live)
		want := dump(t, live)
		_, err := live.ExecContext(t.Context(), `DELETE FROM transactions`)
		check(t, err)
		for _, point := range projections.RebuildCrashPoints() {
			for range 2 { // repeatedly
				killed(t, h, open, point)
			}
		}
		if dump(t, live) != "" {
			t.Fatal("what serves was touched")
		}
		s := open(t)
		told, err := h.rebuild(s).Run(t.Context())
		check(t, err)
		check(t, s.Close())
		if told.Began == 0 {
			t.Error("it began at the beginning")
		}
		if d := cmp.Diff(want, dump(t, live)); d != "" {
			t.Errorf("(-live +rebuilt):\n%s", d)
		}
	})
}

// killed runs a rebuild up to a crash point.
func killed(t *testing.T, h *history, open func(t *testing.T) shadow, point string) {
	t.Helper()
	s := open(t)
	defer func() { check(t, s.Close()) }()
	defer func() {
		if e := recover(); e != nil && e != point {
			panic(e)
		}
	}()
	r := h.rebuild(s)
	r.Crash = func(at string) {
		if at == point {
			panic(point)
		}
	}
	_, err := r.Run(t.Context())
	t.Errorf("it was to be killed at %s: %v", point, err)
}

// A rebuild completes while events are appended, folded and read. No read fails, and no event
// is lost or folded twice.
func TestRebuildUnderLoad(t *testing.T) {
	shadowed(t, func(t *testing.T, live *sql.DB, open func(t *testing.T) shadow) {
		h := newHistory(t)
		const before, during = 21, 40
		for n := range before {
			h.live(t, n)
		}
		h.project(t, live)
		ctx, stop := context.WithCancel(t.Context())
		var around sync.WaitGroup
		defer around.Wait()
		defer stop()
		around.Go(func() { // the service's projector, restarted as its owner does
			for ctx.Err() == nil {
				if err := h.projector(live).Run(ctx); err != nil && !errors.Is(err, eventlog.ErrMoved) && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
		for range 2 {
			around.Go(func() {
				q := transactions.Query{DB: live}
				for ctx.Err() == nil {
					rows, err := q.List(ctx, transactions.Filters{}, 0, 1000)
					if ctx.Err() == nil && (err != nil || len(rows) < before-before/7) {
						t.Errorf("%d rows, %v", len(rows), err)
						return
					}
				}
			})
		}
		for n := before; n < before+during; n++ {
			h.live(t, n)
			if n%8 == 0 {
				s := open(t)
				_, err := h.rebuild(s).Run(t.Context())
				check(t, errors.Join(err, s.Close()))
			}
		}
		s := open(t)
		defer func() { check(t, s.Close()) }()
		head, err := h.log.Head(t.Context())
		check(t, err)
		for at := eventlog.Position(0); at < head; { // wait until the projector has started
			at, err = h.projector(live).Checkpoint(t.Context())
			check(t, err)
		}
		if drift := h.verify(t, s); drift.Total() != 0 || drift.Rows == 0 {
			t.Errorf("%+v", drift)
		}
	})
}

func (h *history) verify(t *testing.T, s projections.Shadow) (drift promises.Drift) {
	t.Helper()
	_, err := h.rebuild(s).Verify(t.Context(), func(_ projections.Table, want, got iter.Seq2[string, []byte]) error {
		drift = promises.Compare(want, got)
		return nil
	})
	check(t, err)
	return drift
}

// A verification finds each row that differs from the log's, and changes none.
func TestVerify(t *testing.T) {
	shadowed(t, func(t *testing.T, live *sql.DB, open func(t *testing.T) shadow) {
		h := newHistory(t)
		for n := range 28 {
			h.live(t, n)
		}
		h.project(t, live)
		s := open(t)
		defer func() { check(t, s.Close()) }()
		before := schema(t, live)
		if drift := h.verify(t, s); drift.Total() != 0 || drift.Rows != 24 {
			t.Errorf("%+v", drift)
		}
		damage := func(text string, hash int) {
			h := hashOf(hash)
			_, err := live.ExecContext(t.Context(), text, h[:])
			check(t, err)
		}
		damage(`UPDATE transactions SET status = 'expired' WHERE hash = $1`, 1)
		damage(`DELETE FROM transactions WHERE hash = $1`, 2)
		damage(`UPDATE transactions SET chain = 7 WHERE hash = $1`, 3) // one missing row and one surplus row
		changed := dump(t, live)
		drift := h.verify(t, s)
		if drift.Different != 1 || drift.Missing != 2 || drift.Extra != 1 {
			t.Errorf("%+v", drift)
		}
		keys := []string{}
		for _, d := range drift.First {
			keys = append(keys, d.Key)
		}
		if want := fmt.Sprintf("%020d/%s", 2, hashOf(1)); !slices.Contains(keys, want) {
			t.Errorf("of %s nothing is said, but of %v", want, keys)
		}
		if dump(t, live) != changed || schema(t, live) != before {
			t.Error("it has changed something")
		}
	})
}

// Rows as JSON are equal text on both engines, and in order of their keys.
func TestRowsOfATable(t *testing.T) {
	h := newHistory(t)
	for n := range 21 {
		h.live(t, n)
	}
	dumps := map[string]string{}
	engines(t, func(t *testing.T, view func(t *testing.T) *sql.DB) {
		db := migrate(t, view(t))
		h.project(t, db)
		var failed error
		var lines, keys []string
		for key, line := range transactions.Model(tx.Codec()).Tables[0].Rows(t.Context(), db, "", &failed) {
			keys, lines = append(keys, key), append(lines, string(line))
		}
		check(t, failed)
		if !slices.IsSorted(keys) || len(keys) != 18 || !strings.Contains(lines[0], `{"table":"transactions","chain":1,"hash":"0x`) {
			t.Errorf("%d keys, first %v", len(keys), lines[:1])
		}
		dumps[t.Name()] = strings.Join(lines, "\n")
	})
	for _, d := range dumps {
		for _, e := range dumps {
			if d != e {
				t.Fatalf("the engines' rows differ: %s", cmp.Diff(d, e))
			}
		}
	}
}

// A snapshot that is being read is not affected by a swap of the tables.
func TestSnapshotIsHeld(t *testing.T) {
	url := testenv.Postgres(t)
	db, err := postgres.Open(t.Context(), url, postgres.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close(context.Background())) })
	check(t, db.Migrate(t.Context()))
	live := migrate(t, db.View())
	h := newHistory(t)
	h.live(t, 1)
	h.project(t, live)
	view, err := postgres.OpenView(url)
	check(t, err)
	t.Cleanup(func() { check(t, view.Close()) })
	snapshot, err := postgres.Snapshot(t.Context(), view, transactions.Model(tx.Codec()).TableNames())
	check(t, err)
	const swap = `LOCK TABLE transactions IN ACCESS EXCLUSIVE MODE NOWAIT`
	try := func() error {
		dbtx, err := live.BeginTx(t.Context(), nil)
		check(t, err)
		defer dbtx.Rollback() //nolint:errcheck // nothing is to stay
		_, err = dbtx.ExecContext(t.Context(), swap)
		return err
	}
	if err := try(); err == nil || !strings.Contains(err.Error(), "could not obtain lock") {
		t.Errorf("while the tables are read: %v", err)
	}
	var lines bytes.Buffer
	check(t, projections.Dump(t.Context(), snapshot, transactions.Model(tx.Codec()), &lines))
	if strings.Count(lines.String(), "\n") != 1 {
		t.Errorf("dumped %s", &lines)
	}
	check(t, snapshot.Rollback())
	check(t, try())
}

package transactions_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// cutShort is a shadow whose process ends before the checkpoint moves.
type cutShort struct{ shadow }

func (s cutShort) Load(ctx context.Context, from, to eventlog.Position, changes []bulk.Change) error {
	return s.shadow.Load(ctx, from+1, to, changes) // the checkpoint is not there
}

// A row is written, the process ends before the checkpoint moves, and the row's transaction is
// retired before the next run. The row does not stay for ever.
func TestRebuildIsKilledBeforeItsCheckpoint(t *testing.T) {
	shadowed(t, func(t *testing.T, live *sql.DB, open func(t *testing.T) shadow) {
		h := newHistory(t)
		for n := range 3 {
			h.command(t, n, accepted(n))
			h.command(t, n, report(1, tx.Permanent))
		}
		s := open(t)
		defer func() { check(t, s.Close()) }()
		if _, err := h.rebuild(cutShort{s}).Run(t.Context()); !errors.Is(err, eventlog.ErrMoved) {
			t.Fatal(err)
		}
		h.command(t, 1, tx.Erase{At: epoch})
		h.command(t, 1, tx.Retire{At: epoch})
		h.project(t, live)
		want := dump(t, live)
		r := h.rebuild(s)
		r.Heap = 100
		_, err := r.Run(t.Context())
		check(t, err)
		if d := cmp.Diff(want, dump(t, live)); d != "" {
			t.Errorf("(-live +rebuilt):\n%s", d)
		}
	})
}

// A shadow left by an earlier version of the program with another schema is not resumed.
func TestRebuildAfterAnUpgrade(t *testing.T) {
	files := fstest.MapFS{"view/9999_other.sql": {Data: []byte(`
		DROP INDEX transactions_sender;
		CREATE INDEX transactions_sender ON transactions (sender, version, position)`)}}
	for _, name := range must(fs.Glob(migrations.View, "view/*.sql")) {
		files[name] = &fstest.MapFile{Data: must(fs.ReadFile(migrations.View, name))}
	}
	migrated(t, func(t *testing.T, live *sql.DB, open func(t *testing.T, files fs.FS, version int) shadow) {
		h := newHistory(t)
		for n := range 35 {
			h.live(t, n)
		}
		h.project(t, live)
		want := dump(t, live)
		killed(t, h, func(t *testing.T) shadow { return open(t, migrations.View, 1) }, projections.RebuildCrashPoints()[0])
		check(t, projections.Migrate(t.Context(), live, files))
		s := open(t, files, 1)
		told, err := h.rebuild(s).Run(t.Context())
		check(t, errors.Join(err, s.Close()))
		if told.Began != 0 {
			t.Errorf("it began after position %d", told.Began)
		}
		if made := schema(t, live); strings.Contains(made, "shadow") || !regexp.MustCompile(`sender, version, "?position`).MatchString(made) {
			t.Errorf("the schema is\n%s", made)
		}
		var sound string
		err = live.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&sound)
		if isSQLite := err == nil; isSQLite && sound != "ok" {
			t.Error(sound)
		}
		if d := cmp.Diff(want, dump(t, live)); d != "" {
			t.Errorf("(-live +rebuilt):\n%s", d)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// lagging is a log read from a node that does not have all of it.
type lagging struct {
	few

	head eventlog.Position
}

func (l lagging) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		for b, err := range l.few.ReadAll(ctx, after, f, most) {
			if err == nil && b.Next > l.head || !yield(b, err) {
				return
			}
		}
	}
}

// If the log ends early, the old tables go on serving.
func TestRebuildOfALogThatEndsEarly(t *testing.T) {
	shadowed(t, func(t *testing.T, live *sql.DB, open func(t *testing.T) shadow) {
		h := newHistory(t)
		for n := range 14 {
			h.live(t, n)
		}
		h.project(t, live)
		want := dump(t, live)
		s := open(t)
		defer func() { check(t, s.Close()) }()
		r := h.rebuild(s)
		r.Log = lagging{few{h.log, 3}, 12}
		if told, err := r.Run(t.Context()); err == nil {
			t.Errorf("it says %+v", told)
		}
		if d := cmp.Diff(want, dump(t, live)); d != "" {
			t.Errorf("(-live +rebuilt):\n%s", d)
		}
		if _, err := r.Verify(t.Context(), func(projections.Table, iter.Seq2[string, []byte], iter.Seq2[string, []byte]) error {
			return errors.New("compared with what is not whole")
		}); err == nil || strings.Contains(err.Error(), "compared") {
			t.Errorf("verified: %v", err)
		}
	})
}

// If two rebuilds start at once, the second is refused.
func TestOneRebuild(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close()) })
		open := func() (*embedded.Shadow, error) {
			return embedded.OpenShadow(t.Context(), db.Dir(), transactions.Name, 1, nil)
		}
		twice(t, open)
		check(t, os.Mkdir(filepath.Join(db.Dir(), "rebuild-other.lock"), 0o700))
		if _, err := embedded.OpenShadow(t.Context(), db.Dir(), "other", 1, nil); err == nil || errors.Is(err, eventlog.ErrBusy) {
			t.Errorf("a lock that cannot be had from anybody: %v", err)
		}
	})
	t.Run("postgres", func(t *testing.T) {
		url := testenv.Postgres(t)
		twice(t, func() (*postgres.Shadow, error) {
			return postgres.OpenShadow(t.Context(), url, transactions.Name, 1, nil, nil)
		})
	})
}

func twice[S shadow](t *testing.T, open func() (S, error)) {
	t.Helper()
	first, err := open()
	check(t, err)
	if _, err := open(); !errors.Is(err, eventlog.ErrBusy) {
		t.Errorf("the second: %v", err)
	}
	check(t, first.Close())
	again, err := open()
	check(t, err)
	check(t, again.Close())
}

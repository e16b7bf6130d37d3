package transactions_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/projections/transactions"
)

// cutShort is a shadow whose process ends before the checkpoint moves.
type cutShort struct{ shadow }

func (s cutShort) Load(ctx context.Context, from, to event.Position, changes []bulk.Change) error {
	return s.shadow.Load(ctx, from+1, to, changes) // which it is not at
}

// A row that was written before the checkpoint moved, and is retired before the next run
// comes to it again, does not stay for ever.
func TestRebuildIsKilledBeforeItsCheckpoint(t *testing.T) {
	shadowed(t, func(t *testing.T, live *sql.DB, open func(t *testing.T) shadow) {
		h := newHistory(t)
		for n := range 3 {
			h.command(t, n, accepted(n))
			h.command(t, n, report(1, tx.Permanent))
		}
		s := open(t)
		defer func() { check(t, s.Close()) }()
		if _, err := h.rebuild(cutShort{s}).Run(t.Context()); !errors.Is(err, event.ErrMoved) {
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

// Of two that would rebuild at once, the second is refused.
func TestOneRebuild(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		db, err := embedded.Open("", embedded.Options{})
		check(t, err)
		t.Cleanup(func() { check(t, db.Close()) })
		open := func() (*embedded.Shadow, error) {
			return embedded.OpenShadow(t.Context(), db.Dir(), transactions.Name, nil)
		}
		twice(t, open)
		check(t, os.Mkdir(filepath.Join(db.Dir(), "rebuild-other.lock"), 0o700))
		if _, err := embedded.OpenShadow(t.Context(), db.Dir(), "other", nil); err == nil || errors.Is(err, event.ErrBusy) {
			t.Errorf("a lock that cannot be had from anybody: %v", err)
		}
	})
	t.Run("postgres", func(t *testing.T) {
		url := testenv.Postgres(t)
		twice(t, func() (*postgres.Shadow, error) {
			return postgres.OpenShadow(t.Context(), url, transactions.Name, nil, nil)
		})
	})
}

func twice[S shadow](t *testing.T, open func() (S, error)) {
	t.Helper()
	first, err := open()
	check(t, err)
	if _, err := open(); !errors.Is(err, event.ErrBusy) {
		t.Errorf("the second: %v", err)
	}
	check(t, first.Close())
	again, err := open()
	check(t, err)
	check(t, again.Close())
}

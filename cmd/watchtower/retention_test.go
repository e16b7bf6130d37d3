package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// Settled transactions are removed in two steps: the bytes, then the rows, by an event. Read
// models rebuilt from the log do not bring the rows back.
func TestRetiredStaysAway(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		payments, _ := rig.Payments(9100, 3)
		s := w.service(t)
		args := append(s.Args, "--retention-bytes", "1s", "--retention-rows")
		s.Args = append(args, "1s")
		check(t, s.Start(w.ctx))
		w.submit(t, s, payments, 1)
		for _, p := range payments {
			w.retired(t, s.URL, p.Hash)
		}
		check(t, s.Stop(w.ctx))
		for _, sealed := range w.payloads(t, payments) {
			t.Errorf("the bytes of %s are kept", sealed.Hash)
		}
		w.forget(t)

		fresh, _ := rig.Payments(9101, 1)
		s.Args = append(slices.Clone(args), "1h") // the fresh transaction stays visible
		check(t, s.Start(w.ctx))
		w.submit(t, s, fresh, 1)
		w.delivered(t, s.URL, fresh, rig.Sealed) // the read models have reached it
		for _, p := range payments {
			w.retired(t, s.URL, p.Hash)
		}
		check(t, s.Stop(w.ctx))
	})
}

// retired waits until a transaction is unknown although its events exist.
func (w *world) retired(t *testing.T, url string, hash chain.Hash) {
	t.Helper()
	for {
		_, err := rig.Get(w.ctx, url, hash)
		if err != nil && strings.Contains(err.Error(), "404") {
			break
		}
		select {
		case <-w.ctx.Done():
			t.Fatalf("%s was never retired: %v", hash, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	events, err := rig.Events(w.ctx, url, hash)
	check(t, err)
	var names []string
	for _, e := range events[max(len(events)-2, 0):] {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "tx.payload_erased.v1 tx.retired.v1" {
		t.Errorf("the last events of %s are %s", hash, got)
	}
}

// forget deletes all data derived from the log.
func (w *world) forget(t *testing.T) {
	t.Helper()
	dir, dsn := w.engine()
	if dir != "" {
		for _, pattern := range []string{"work.db*", "view.db*"} {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			check(t, err)
			for _, file := range files {
				check(t, os.Remove(file))
			}
		}
		return
	}
	db, err := pgx.Connect(w.ctx, dsn)
	check(t, err)
	defer db.Close(w.ctx) //nolint:errcheck // the test is over with it
	_, err = db.Exec(w.ctx, `DO $$ DECLARE t text; BEGIN
		FOR t IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
			WHERE schemaname IN ('work', 'view') AND tablename <> 'view_migrations' LOOP
			EXECUTE 'TRUNCATE ' || t || ' CASCADE';
		END LOOP; END $$`)
	check(t, err)
}

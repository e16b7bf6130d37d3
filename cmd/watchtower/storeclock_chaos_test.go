//go:build chaos && linux

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/promises"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// shifty is a Postgres server whose clock can be set while it runs.
type shifty struct {
	*server.Postgres
	file string
}

func newShifty(t *testing.T) shifty {
	t.Helper()
	library := testenv.File(t, "/usr/lib/*/faketime/libfaketime.so.1")
	dir, err := os.MkdirTemp("", "wt-clock-")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	check(t, os.Chmod(dir, 0o755)) //nolint:gosec // the server reads it as another user
	s := shifty{file: filepath.Join(dir, "offset")}
	s.set(t, 0)
	s.Postgres, err = server.NewPostgresWith(t.Context(), testenv.Need(t, testenv.PostgresBinVar), server.PostgresOptions{Env: []string{
		"LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + s.file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
	}})
	check(t, err)
	t.Cleanup(func() { check(t, s.Remove()) })
	check(t, s.Start(t.Context()))
	return s
}

// set sets the server's clock ahead of ours, or behind if ahead is negative.
func (s shifty) set(t *testing.T, ahead time.Duration) {
	t.Helper()
	draft := s.file + ".new"
	check(t, os.WriteFile(draft, fmt.Appendf(nil, "%+d\n", int(ahead/time.Second)), 0o644)) //nolint:gosec // the server reads it as another user
	check(t, os.Rename(draft, s.file))
}

// Row 22. The database's clock jumps by an hour and by a day in both directions while two
// replicas work. After each jump the owner of everything is killed. The other takes over as fast
// as usual, and no transaction waits for a clock.
func TestStoreClockJumps(t *testing.T) {
	db := newShifty(t)
	w := newWorld(t, func(_ *testing.T, dir string) []string {
		return []string{"--store", db.URL(), "--vault-key-file", filepath.Join(dir, "vault.key")}
	}, "--block-time", "1")
	// Sends and reads are timed by our clock.
	for _, p := range []promises.Number{promises.P8, promises.P24} {
		w.broken[p] = "the log tells times by the clock that is set"
	}
	owner, other := w.pair(t)
	series := uint32(9751)
	var all []rig.Payment
	for _, jump := range []struct {
		name string
		to   time.Duration
	}{
		{"an hour ahead", time.Hour}, {"an hour back", 0}, {"an hour back", -time.Hour}, {"an hour ahead", 0},
		{"a day ahead", 24 * time.Hour}, {"a day back", 0}, {"a day back", -24 * time.Hour}, {"a day ahead", 0},
	} {
		payments, to := rig.Payments(series, 40)
		series++
		load(w.ctx, owner, payments[:20], 8) // its workers are busy with these
		db.set(t, jump.to)
		jumped := time.Now()
		owner.Kill()
		w.insist(t, payments[20:], 8, other.URL)
		w.delivered(t, other.URL, payments, rig.Executed)
		took := time.Since(jumped)
		t.Logf("%s: all executed %v after the jump, and their owner's death", jump.name, took.Round(time.Millisecond))
		if took > 20*time.Second {
			t.Errorf("%s: it took %v", jump.name, took)
		}
		w.paidOnce(t, to, len(payments))
		all = append(all, payments...)
		owner, other = other, owner
		check(t, other.Start(w.ctx))
	}
	conn, err := pgx.Connect(w.ctx, db.URL())
	check(t, err)
	defer conn.Close(w.ctx) //nolint:errcheck // only read from
	var spread time.Duration
	check(t, conn.QueryRow(w.ctx, `SELECT max(at) - min(at) FROM log.events`).Scan(&spread))
	if spread < 40*time.Hour {
		t.Fatalf("the server's events are %v apart: its clock did not jump", spread)
	}
	check(t, owner.Stop(w.ctx))
	check(t, other.Stop(w.ctx))
}

package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/migrations"
)

var soonest = context.Background()

func open(t *testing.T, dir string, o embedded.Options) *embedded.DB {
	t.Helper()
	db, err := embedded.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() }) //nolint:errcheck // those who care close it themselves
	return db
}

func closed(t *testing.T, db *embedded.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOneProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store with ? and %")
	first := open(t, dir, embedded.Options{})
	if _, err := embedded.Open(dir, embedded.Options{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Fatal("a second opener was told:", err)
	}
	closed(t, first)
	again := open(t, dir, embedded.Options{})
	if err := again.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	closed(t, again)
	if err := again.Ping(t.Context()); err == nil {
		t.Error("a closed store answers")
	}
	if err := embedded.Migrate(dir); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"events.db-wal", "keys.db-wal", "work.db-wal", "view.db-wal"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("after Close there is a %s: the files are not whole without it", name)
		}
	}
}

func TestTemporary(t *testing.T) {
	for _, name := range []string{"", ":memory:"} {
		db := open(t, name, embedded.Options{})
		if _, err := db.Log().Append(t.Context(), "one", 0, crashEvents("one")...); err != nil {
			t.Fatal(err)
		}
		other := open(t, name, embedded.Options{})
		if head, err := other.Log().Head(t.Context()); head != 0 || err != nil {
			t.Errorf("a second temporary store begins at %d, %v", head, err)
		}
		closed(t, db)
		closed(t, other)
		if _, err := os.Stat(db.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after Close: %v", err)
		}
	}
}

func TestNewerFiles(t *testing.T) {
	for _, name := range []string{"events.db", "keys.db", "work.db"} {
		dir := t.TempDir()
		closed(t, open(t, dir, embedded.Options{}))
		conn, err := sqlite.OpenConn(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA user_version = 99", nil); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := embedded.Open(dir, embedded.Options{}); err == nil || !strings.Contains(err.Error(), "newer") {
			t.Errorf("%s made by a newer version: %v", name, err)
		}
	}
}

// TestLostFiles removes the files that may be lost. The queue starts empty. Payloads without
// keys count as gone, and can be stored again.
func TestLostFiles(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, embedded.Options{})
	row := crashPayload("one")
	if err := db.Payloads().Put(t.Context(), []payload.Sealed{row}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Log().Append(t.Context(), "one", 0, crashEvents("one")...); err != nil {
		t.Fatal(err)
	}
	if err := db.Work().MoveCheckpoint(t.Context(), "reader", 0, 3); err != nil {
		t.Fatal(err)
	}
	closed(t, db)
	for _, name := range []string{"keys.db", "work.db", "view.db"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	db = open(t, dir, embedded.Options{})
	if at, err := db.Work().Checkpoint(t.Context(), "reader"); at != 0 || err != nil {
		t.Errorf("the reader is at %d, %v", at, err)
	}
	if head, err := db.Log().Head(t.Context()); head != 3 || err != nil {
		t.Errorf("the head is %d, %v", head, err)
	}
	if _, err := db.Payloads().Get(t.Context(), row.Chain, row.Hash); !errors.Is(err, payload.ErrGone) {
		t.Errorf("without its key: %v", err)
	}
	row.Wrapped, row.Bytes = []byte("another key"), []byte("other bytes")
	if err := db.Payloads().Put(t.Context(), []payload.Sealed{row}); err != nil {
		t.Fatal(err)
	}
	got, err := db.Payloads().Get(t.Context(), row.Chain, row.Hash)
	if err != nil || string(got.Wrapped) != "another key" || string(got.Bytes) != "other bytes" {
		t.Errorf("kept anew: %v, %v", got, err)
	}
}

// TestOlderLog reads from a position that this log has not reached, as after a restore. The
// reader must get an error: waiting there would skip the events appended meanwhile.
func TestOlderLog(t *testing.T) {
	db := open(t, "", embedded.Options{})
	if _, err := db.Log().Append(t.Context(), "one", 0, crashEvents("one")...); err != nil {
		t.Fatal(err)
	}
	for _, err := range db.Log().Subscribe(t.Context(), 4, eventlog.Filter{}, 10) {
		if err == nil || !strings.Contains(err.Error(), "backup") {
			t.Error("beyond the head:", err)
		}
	}
	for _, err := range db.Log().ReadAll(t.Context(), 3, eventlog.Filter{}, 10) {
		if err != nil {
			t.Error("at the head:", err)
		}
	}
	for _, err := range db.Log().ReadAll(t.Context(), 0, eventlog.Filter{}, 0) {
		if err == nil {
			t.Error("batches of no events were given")
		}
	}
}

// TestNoStrayKeys puts the same payloads concurrently: only the keys of the stored rows are
// kept.
func TestNoStrayKeys(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, embedded.Options{})
	var all sync.WaitGroup
	for side := range 8 {
		all.Go(func() {
			for n := range 10 {
				row := crashPayload(eventlog.Stream(fmt.Sprint(n)))
				row.Wrapped = fmt.Appendf(nil, "key %d of %d", side, n)
				if err := db.Payloads().Put(t.Context(), []payload.Sealed{row}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	closed(t, db)
	conn, err := sqlite.OpenConn(filepath.Join(dir, "keys.db"), sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // only read from
	for _, text := range []string{"SELECT count(*) FROM keys", "SELECT count(*) FROM slots WHERE free = 0"} {
		stmt, _, err := conn.PrepareTransient(text)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := sqlitex.ResultInt(stmt); n != 10 || err != nil {
			t.Errorf("%s: %d, %v", text, n, err)
		}
		if err := stmt.Finalize(); err != nil {
			t.Error(err)
		}
	}
}

func TestCrashPoints(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	db := open(t, "", embedded.Options{Crash: func(point string) {
		mu.Lock()
		defer mu.Unlock()
		seen[point] = true
	}})
	if err := db.Payloads().Put(t.Context(), []payload.Sealed{crashPayload("one")}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Log().Append(t.Context(), "one", 0, crashEvents("one")...); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for point := range seen {
		if !slices.Contains(embedded.CrashPoints(), point) {
			t.Errorf("%s is not listed", point)
		}
	}
	if len(seen) != len(embedded.CrashPoints()) {
		t.Errorf("came to %v, listed are %v", seen, embedded.CrashPoints())
	}
}

// TestLongReader keeps another program reading, as a backup does. Appends continue. An erasure
// returns that it is not finished, and finishes when it is retried afterwards.
func TestLongReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, embedded.Options{})
	row := crashPayload("one")
	row.Bytes = []byte("the bytes that have to go")
	if err := db.Payloads().Put(t.Context(), []payload.Sealed{row}); err != nil {
		t.Fatal(err)
	}
	reader, err := sqlite.OpenConn(filepath.Join(dir, "events.db"), sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"BEGIN", "SELECT count(*) FROM events"} {
		if err := sqlitex.ExecuteTransient(reader, text, nil); err != nil {
			t.Fatal(err)
		}
	}

	big := crashEvents("big")
	big[0].Data = make([]byte, eventlog.MaxEventBytes)
	slowest := time.Duration(0)
	for i := range 270 { // 67 MiB: above the writer's limit
		start := time.Now()
		if _, err := db.Log().Append(t.Context(), "big", eventlog.Version(3*i), big...); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(start))
	}
	if slowest > 10*time.Second {
		t.Errorf("beside a reader an append took %s", slowest)
	}
	erase := func() error { return db.Payloads().Erase(t.Context(), row.Chain, []chain.Hash{row.Hash}) }
	if err := erase(); err == nil || !strings.Contains(err.Error(), "write-ahead log") {
		t.Error("an erasure beside a reader answered", err)
	}
	if _, err := db.Payloads().Get(t.Context(), row.Chain, row.Hash); !errors.Is(err, payload.ErrGone) {
		t.Error("after it:", err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if err := erase(); err != nil {
		t.Error("an erasure after it answered", err)
	}
	left := medium(t, dir)
	for _, secret := range [][]byte{row.Bytes, row.Wrapped} {
		if bytes.Contains(left, secret) {
			t.Errorf("%q is still in the files", secret)
		}
	}
}

// TestLogInBounds writes more than the limit of the write-ahead log.
func TestLogInBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, embedded.Options{})
	big := crashEvents("big")
	big[0].Data = make([]byte, eventlog.MaxEventBytes)
	most := int64(0)
	for i := range 320 { // 80 MiB
		if _, err := db.Log().Append(t.Context(), "big", eventlog.Version(3*i), big...); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "events.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, info.Size())
	}
	if most > 70<<20 {
		t.Errorf("the write-ahead log grew to %d MiB", most>>20)
	}
}

func TestView(t *testing.T) {
	db := open(t, t.TempDir(), embedded.Options{})
	view := db.View()
	// The SQL is the same as for Postgres, including the types.
	for _, name := range viewTables(t) {
		text, err := fs.ReadFile(migrations.View, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := view.ExecContext(t.Context(), string(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	// Parameters by number, upserts.
	if _, err := view.ExecContext(t.Context(), "INSERT INTO readers (name, position) VALUES ($1, $2)", "one", 0); err != nil {
		t.Fatal(err)
	}
	const workers, rounds = 8, 40
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range rounds {
				if err := advance(t.Context(), db); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	var at int
	if err := view.QueryRowContext(t.Context(), "SELECT position FROM readers WHERE name = $1", "one").Scan(&at); err != nil || at != workers*rounds {
		t.Errorf("%d of %d transactions are seen, %v", at, workers*rounds, err)
	}
}

// advance reads and then writes in one transaction.
func advance(ctx context.Context, db *embedded.DB) error {
	dbtx, err := db.View().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer dbtx.Rollback() //nolint:errcheck // after Commit it does nothing
	var at int
	if err := dbtx.QueryRowContext(ctx, "SELECT position FROM readers WHERE name = $1", "one").Scan(&at); err != nil {
		return err
	}
	if _, err := dbtx.ExecContext(ctx, `INSERT INTO readers (name, position) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET position = excluded.position`, "one", at+1); err != nil {
		return err
	}
	return dbtx.Commit()
}

func viewTables(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(migrations.View, "view/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("the read models' tables: %v, %v", names, err)
	}
	return names
}

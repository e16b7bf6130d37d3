package server

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPostgresComesBackAfterKill(t *testing.T) {
	p, err := NewPostgres(t.Context(), testenv.Need(t, testenv.PostgresBinVar))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(p.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the folder is still there: %v", err)
		}
	}()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err == nil {
		t.Error("a second Start of a running server is accepted")
	}
	first := p.URL()
	query(t, first, "CREATE TABLE kept (n int)")
	query(t, first, "INSERT INTO kept VALUES (7)")
	if got := query(t, first, "SHOW synchronous_commit"); got != "on" {
		t.Errorf("synchronous_commit = %s", got)
	}
	for _, end := range []func() error{p.Kill, p.Stop} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if answers(first) {
			t.Error("the server answers after its end")
		}
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.URL() != first {
			t.Errorf("the server moved from %s to %s", first, p.URL())
		}
		if got := query(t, first, "SELECT n::text FROM kept"); got != "7" {
			t.Errorf("kept %q, want 7", got)
		}
	}
}

// TestPostgresComesBackBesideItsHelpers kills a server whose helper processes run long queries.
// They outlive it by seconds, and produce much output.
func TestPostgresComesBackBesideItsHelpers(t *testing.T) {
	p, err := NewPostgres(t.Context(), testenv.Need(t, testenv.PostgresBinVar))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
	}()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	const helpers = 40
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for range helpers {
		conn, err := pgx.Connect(ctx, p.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx) //nolint:errcheck // its server is gone
		// Sent without waiting for the result: such a query does not notice the server's death.
		conn.PgConn().Frontend().Send(&pgproto3.Query{String: "SELECT count(*) FROM generate_series(1, 500000)"})
		if err := conn.PgConn().Frontend().Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, p.URL(), "SELECT 'here'"); got != "here" {
		t.Errorf("the server answers %q", got)
	}
}

func TestRedisComesBackAfterKill(t *testing.T) {
	r, err := NewRedis(testenv.Need(t, testenv.RedisBinVar))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Remove(); err != nil {
			t.Error(err)
		}
	}()
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := r.URL()
	for _, end := range []func() error{r.Kill, r.Stop} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if answers(first) {
			t.Error("the server answers after its end")
		}
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.URL() != first {
			t.Errorf("the server moved from %s to %s", first, r.URL())
		}
	}
}

func TestServerThatEndsAtOnceSaysWhy(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "redis-server")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho no room for a cat >&2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := NewRedis(program)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Remove() //nolint:errcheck // nothing runs
	if err := r.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "no room for a cat") {
		t.Errorf("Start = %v, want the server's last words", err)
	}
}

func TestUnpacked(t *testing.T) {
	for _, c := range []struct {
		program, tree, within string
		ok                    bool
	}{
		{"/usr/lib/postgresql/15/bin", "", "", false},
		{"/usr/local/opt/postgresql/bin", "", "", false},
		{"/opt/postgres/bin", "", "", false},
		{"/a/.tools/debian/usr/lib/postgresql/15/bin", "/a/.tools/debian", "usr/lib/postgresql/15/bin", true},
	} {
		tree, within, ok := unpacked(c.program)
		if ok != c.ok || ok && (tree != c.tree || within != c.within) {
			t.Errorf("unpacked(%s) = %q, %q, %v", c.program, tree, within, ok)
		}
	}
}

func TestReachable(t *testing.T) {
	dir, err := newFolder("wt-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // best effort
	if !reachable(dir) {
		t.Errorf("%s is not reachable", dir)
	}
	closed := filepath.Join(dir, "closed")
	if err := os.MkdirAll(filepath.Join(closed, "open"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if reachable(filepath.Join(closed, "open")) {
		t.Error("a folder below a closed one counts as reachable")
	}
}

func query(t *testing.T, dsn, sql string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx) //nolint:errcheck // the answer is what counts
	var text string
	if err := conn.QueryRow(ctx, sql).Scan(&text); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("%s: %v", sql, err)
	}
	return text
}

func answers(dsn string) bool {
	u, err := url.Parse(dsn)
	if err != nil {
		return false
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return false
	}
	conn.Close() //nolint:errcheck // it answered
	return true
}

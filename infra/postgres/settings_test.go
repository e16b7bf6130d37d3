package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
)

// TestOpenRefuses opens servers that cannot give the guarantees.
func TestOpenRefuses(t *testing.T) {
	ctx := soon(t)
	url := testenv.Postgres(t)
	name := url[strings.LastIndex(url, "/")+1:]
	execute(t, admin(t, url), `ALTER DATABASE `+name+` SET synchronous_commit = off`)
	_, err := postgres.Open(ctx, url, postgres.Options{})
	if err == nil || !strings.Contains(err.Error(), "synchronous_commit is off") || postgres.Transient(err) {
		t.Error("a server that loses commits:", err)
	}
	db, err := postgres.Open(ctx, url, postgres.Options{AllowDataLoss: true})
	must(t, err)
	must(t, db.Close(ctx))

	_, err = postgres.Open(ctx, "postgres://localhost:notaport/x", postgres.Options{})
	if err == nil || postgres.Transient(err) {
		t.Error("a broken URL:", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, listener.Close())
	_, err = postgres.Open(ctx, "postgres://u:secret@"+listener.Addr().String()+"/x", postgres.Options{})
	if err == nil || !postgres.Transient(err) || strings.Contains(err.Error(), "secret") {
		t.Error("nobody there:", err)
	}
	_, err = postgres.Open(ctx, url+"_not_there", postgres.Options{})
	if err == nil || postgres.Transient(err) {
		t.Error("no such database:", err)
	}
}

// TestSettingsChange makes a server in use stop keeping its commits. New sessions are refused
// until it keeps them again.
func TestSettingsChange(t *testing.T) {
	op := open(t, postgres.Options{})
	conn := admin(t, op.url)
	name := op.url[strings.LastIndex(op.url, "/")+1:]
	anew := func(change string) {
		t.Helper()
		execute(t, conn, `ALTER DATABASE `+name+` `+change)
		execute(t, conn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	}
	says := func(err error) bool { return err != nil && strings.Contains(err.Error(), "synchronous_commit is off") }
	put := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := op.db.Log.Append(ctx, "stream", 0, eventlog.Event{ID: eventlog.ID{1}, Name: "a", Data: []byte("{}")})
		return err
	}
	must(t, op.db.Ping(soon(t)))
	anew(`SET synchronous_commit = off`)
	eventually(t, "the old sessions are gone", func() bool { return says(op.db.Ping(soon(t))) })
	if _, err := op.db.Leases.Acquire(soon(t), "lease", "holder", time.Minute); !says(err) || !postgres.Transient(err) {
		t.Errorf("a lease: %v", err)
	}
	if err := put(); err == nil {
		t.Error("an event was taken")
	}
	anew(`RESET synchronous_commit`)
	eventually(t, "it keeps what it commits", func() bool { return op.db.Ping(soon(t)) == nil && put() == nil })
}

// TestOpenReplica opens a server that accepts no writes, as one of several hosts.
func TestOpenReplica(t *testing.T) {
	dsn := testenv.Postgres(t)
	name := dsn[strings.LastIndex(dsn, "/")+1:]
	execute(t, admin(t, dsn), `ALTER DATABASE `+name+` SET default_transaction_read_only = on`)
	if _, err := postgres.Open(soon(t), dsn, postgres.Options{}); err == nil || !postgres.Transient(err) {
		t.Error("a server that takes no writes:", err)
	}
}

// TestSession checks the settings of a session.
func TestSession(t *testing.T) {
	dsn := testenv.Postgres(t)
	u, err := url.Parse(dsn)
	must(t, err)
	u.RawQuery = url.Values{"statement_timeout": {"7000"}, "pool_max_conns": {"3"}}.Encode()
	db, err := postgres.Open(soon(t), u.String(), postgres.Options{Application: "tower", LockTimeout: 4 * time.Second})
	must(t, err)
	defer db.Close(soon(t)) //nolint:errcheck // not what is tested
	want := map[string]string{
		"application_name":                    "tower",
		"statement_timeout":                   "7s", // from the URL
		"lock_timeout":                        "4s",
		"idle_in_transaction_session_timeout": "2s",
		"search_path":                         "view",
		"synchronous_commit":                  "off",
		"default_transaction_isolation":       "read committed",
		"TimeZone":                            "UTC",
	}
	got := map[string]string{}
	for name := range want {
		var value string
		must(t, db.View().QueryRowContext(soon(t), `SELECT current_setting($1)`, name).Scan(&value))
		got[name] = value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	must(t, db.Ping(soon(t)))
	must(t, db.Close(soon(t)))
	if err := db.Ping(soon(t)); !errors.Is(err, eventlog.ErrClosed) {
		t.Error("closed, it answers", err)
	}
}

// TestMigrateAtOnce starts several replicas on an empty database.
func TestMigrateAtOnce(t *testing.T) {
	url := testenv.Postgres(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			db, err := postgres.Open(soon(t), url, postgres.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			for range 2 {
				if err := db.Migrate(soon(t)); err != nil {
					t.Error(err)
				}
			}
			if err := db.Close(soon(t)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var applied int
	must(t, admin(t, url).QueryRow(soon(t), `SELECT count(*) FROM log.migrations`).Scan(&applied))
	names, err := fs.Glob(migrations.Postgres, "*/*.sql")
	must(t, err)
	if applied != len(names) {
		t.Errorf("%d migrations were applied, not %d", applied, len(names))
	}
}

// TestMigrate migrates a schema through successive versions.
func TestMigrate(t *testing.T) {
	db, err := postgres.Open(soon(t), testenv.Postgres(t), postgres.Options{})
	must(t, err)
	defer db.Close(soon(t)) //nolint:errcheck // not what is tested
	ctx := soon(t)
	files := fstest.MapFS{"x/0001_things.sql": {Data: []byte(`CREATE TABLE view.things (n bigint); INSERT INTO view.things VALUES (1);`)}}
	sum := func() (n int) {
		must(t, db.View().QueryRowContext(ctx, `SELECT sum(n) FROM things`).Scan(&n))
		return n
	}
	must(t, db.MigrateFiles(ctx, files))
	files["x/0010_more.sql"] = &fstest.MapFile{Data: []byte(`INSERT INTO view.things VALUES (10)`)}
	files["x/0002_some.sql"] = &fstest.MapFile{Data: []byte(`UPDATE view.things SET n = 2 * n`)}
	must(t, db.MigrateFiles(ctx, files))
	must(t, db.MigrateFiles(ctx, files))
	if n := sum(); n != 12 {
		t.Errorf("after three migrations in order the sum is %d, not 12", n)
	}
	delete(files, "x/0010_more.sql") // a newer program has migrated
	must(t, db.MigrateFiles(ctx, files))

	files["x/0003_broken.sql"] = &fstest.MapFile{Data: []byte(`INSERT INTO view.things VALUES (100); SELECT nonsense`)}
	if err := db.MigrateFiles(ctx, files); err == nil || !strings.Contains(err.Error(), "0003_broken.sql") {
		t.Error("a broken migration answers", err)
	}
	delete(files, "x/0003_broken.sql")
	if n := sum(); n != 12 {
		t.Errorf("a broken migration left the sum at %d", n)
	}
	files["x/0001_things.sql"] = &fstest.MapFile{Data: []byte(`CREATE TABLE view.things (n text)`)}
	if err := db.MigrateFiles(ctx, files); err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Error("a changed migration answers", err)
	}
	if err := db.MigrateFiles(ctx, fstest.MapFS{"things.sql": {}}); err == nil {
		t.Error("a migration without a number was taken")
	}
	_, err = db.View().ExecContext(ctx, `DROP SCHEMA view CASCADE`) // as a rebuild may
	must(t, err)
	must(t, db.MigrateFiles(ctx, fstest.MapFS{}))
	_, err = db.View().ExecContext(ctx, `CREATE TABLE things (n bigint)`)
	must(t, err)
}

// TestPartitions fills several small partitions and reads across them, also under filters that
// few or no events pass.
func TestPartitions(t *testing.T) {
	op := open(t, postgres.Options{Partition: 4000})
	ctx := soon(t)
	const long, total = eventlog.Stream("long"), 30_000
	var all sync.WaitGroup
	for s := range 10 {
		stream := eventlog.Stream(fmt.Sprint("s-", s))
		all.Go(func() {
			for v := eventlog.Version(0); v < total/10; v += eventlog.MaxAppend {
				if _, err := op.db.Log.Append(ctx, stream, v, happened(stream, v, eventlog.MaxAppend)...); err != nil {
					t.Error(err)
				}
				if v%1000 != 0 {
					continue
				}
				at := v / 1000
				if s == 0 {
					if _, err := op.db.Log.Append(ctx, long, at, happened(long, at, 1)...); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	head, err := op.db.Log.Head(ctx)
	must(t, err)
	if head != total+3 {
		t.Fatalf("the head is %d, not %d", head, total+3)
	}
	if got := stands(t, op.db.Log, long); len(got) != 3 || got[2].Position-got[0].Position < 4000 {
		t.Errorf("a stream across partitions: %v", got)
	}
	for name, c := range map[string]struct {
		filter eventlog.Filter
		want   int
	}{
		"all": {eventlog.Filter{}, total + 3}, "few": {eventlog.Filter{Streams: []string{"long"}}, 3},
		"none": {eventlog.Filter{Names: []string{"other."}}, 0},
		"both": {eventlog.Filter{Streams: []string{"long"}, Names: []string{"other."}}, 3},
	} {
		var at eventlog.Position
		n, batches := 0, 0
		for b, err := range op.db.Log.ReadAll(ctx, 0, c.filter, 1000) {
			must(t, err)
			if b.Next < at {
				t.Fatalf("%s: from %d to %d", name, at, b.Next)
			}
			at, n, batches = b.Next, n+len(b.Events), batches+1
		}
		if n != c.want || at != head {
			t.Errorf("%s: %d events up to %d", name, n, at)
		}
		if batches < 2 {
			t.Errorf("%s: a scan of %d positions in %d batches", name, total, batches)
		}
	}
	var holes, used int
	must(t, admin(t, op.url).QueryRow(ctx, `SELECT count(*) FILTER (WHERE first <> before), count(*) FILTER (WHERE first <= $1)
		FROM (SELECT first, lag(past, 1, 1::bigint) OVER (ORDER BY first) AS before FROM log.partitions) p`, total).Scan(&holes, &used))
	if holes != 0 || used != 8 {
		t.Errorf("%d partitions are in use, %d do not follow the one before", used, holes)
	}
}

// TestCrashPoints reaches every listed point in an append.
func TestCrashPoints(t *testing.T) {
	var passed []string
	op := open(t, postgres.Options{Crash: func(point string) { passed = append(passed, point) }})
	_, err := op.db.Log.Append(context.Background(), "one", 0, happened("one", 0, 1)...)
	must(t, err)
	must(t, op.close()) // and with it the committer
	if diff := cmp.Diff(postgres.CrashPoints(), passed); diff != "" {
		t.Error(diff)
	}
}

package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// window is small so that suites fill it with few rows.
const window = 4

// opener reopens a database each time it is closed.
type opener struct {
	t   testing.TB
	url string
	o   postgres.Options
	db  *postgres.DB
}

// open makes a database with its tables. The test's cleanup closes it.
func open(t testing.TB, o postgres.Options) *opener {
	t.Helper()
	if o.Window == 0 {
		o.Window = window
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	op := &opener{t: t, url: testenv.Postgres(t), o: o}
	op.start()
	if err := op.db.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { op.close() }) //nolint:errcheck // the tests that care have looked
	return op
}

func (op *opener) start() {
	op.t.Helper()
	var err error
	if op.db, err = postgres.Open(context.Background(), op.url, op.o); err != nil {
		op.t.Fatal(err)
	}
}

// again opens the same database as another process would.
func (op *opener) again() *opener {
	op.t.Helper()
	other := &opener{t: op.t, url: op.url, o: op.o}
	other.start()
	op.t.Cleanup(func() { other.close() }) //nolint:errcheck // as above
	return other
}

func (op *opener) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return op.db.Close(ctx)
}

// opened adapts an opener to a suite.
func opened[P any](op *opener, port func(*postgres.DB) P) storetest.Opened[P] {
	return storetest.Opened[P]{
		Port:  port(op.db),
		Close: op.close,
		Reopen: func() P {
			if err := op.close(); err != nil {
				op.t.Fatal(err)
			}
			op.start()
			return port(op.db)
		},
		Window: op.o.Window,
	}
}

func TestStore(t *testing.T) {
	storetest.Store(t, func(t *testing.T) storetest.Opened[storetest.Log] {
		return opened(open(t, postgres.Options{}), func(db *postgres.DB) storetest.Log { return db.Log })
	})
}

func TestPayloads(t *testing.T) {
	storetest.Payloads(t, func(t *testing.T) storetest.Opened[storetest.PayloadRows] {
		return opened(open(t, postgres.Options{}), func(db *postgres.DB) storetest.PayloadRows { return db.Payloads })
	})
}

func TestCheckpoints(t *testing.T) {
	storetest.Checkpoints(t, func(t *testing.T) storetest.Opened[storetest.CheckpointRows] {
		return opened(open(t, postgres.Options{}), func(db *postgres.DB) storetest.CheckpointRows { return db.Checkpoints })
	})
}

func TestLeases(t *testing.T) {
	storetest.Leases(t, func(t *testing.T) storetest.Opened[storetest.LeaseRows] {
		return opened(open(t, postgres.Options{}), func(db *postgres.DB) storetest.LeaseRows { return db.Leases })
	})
}

func TestRequests(t *testing.T) {
	storetest.Requests(t, func(t *testing.T) storetest.Opened[storetest.RequestRows] {
		return opened(open(t, postgres.Options{}), func(db *postgres.DB) storetest.RequestRows { return db.Requests })
	})
}

func TestQueue(t *testing.T) {
	type rows struct {
		*postgres.Work
		*postgres.Checkpoints
	}
	storetest.Queue(t, func(t *testing.T) storetest.Opened[storetest.WorkRows] {
		return opened(open(t, postgres.Options{}), func(db *postgres.DB) storetest.WorkRows { return rows{db.Work, db.Checkpoints} })
	})
}

// soon is the time limit of a test's operations.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// admin is a separate session in the test's database.
func admin(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(soon(t), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) }) //nolint:errcheck // the test is over
	return conn
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func execute(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(soon(t), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// eventually asks until the answer is yes, or fails.
func eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	ctx := soon(t)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("not in time: ", what)
		}
	}
}

// happened returns events whose ids are derived from the stream and the version.
func happened(stream eventlog.Stream, after eventlog.Version, n int) []eventlog.Event {
	events := make([]eventlog.Event, n)
	for i := range events {
		events[i] = eventlog.Event{
			ID: eventlog.DeriveID(stream, eventlog.ID{1}, int(after)+i), Name: "test.happened.v1",
			Data: fmt.Appendf(nil, `{"n":%d}`, int(after)+i),
		}
	}
	return events
}

// stands reads a stream.
func stands(t testing.TB, l *postgres.Log, stream eventlog.Stream) (events []eventlog.Recorded) {
	t.Helper()
	for r, err := range l.ReadStream(soon(t), stream, 0) {
		must(t, err)
		events = append(events, r)
	}
	return events
}

func TestSnapshots(t *testing.T) {
	storetest.Snapshots(t, func(t *testing.T) storetest.Opened[storetest.SnapshotRows] {
		return opened(open(t, postgres.Options{}), func(db *postgres.DB) storetest.SnapshotRows { return db.Snapshots })
	})
}

func TestNotices(t *testing.T) {
	storetest.Notices(t, func(t *testing.T) storetest.Opened[storetest.NoticeRows] {
		return opened(open(t, postgres.Options{}), func(db *postgres.DB) storetest.NoticeRows {
			return db.Notices(storetest.NoticePolicy())
		})
	})
}

func TestIntents(t *testing.T) {
	storetest.Intents(t, func(t *testing.T) storetest.Opened[storetest.IntentRows] {
		return opened(open(t, postgres.Options{}), func(db *postgres.DB) storetest.IntentRows { return db.Intents() })
	})
}

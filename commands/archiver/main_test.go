package archiver_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/commands/archiver"
	domain "github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}

// live is a store whose events are archived.
type live interface {
	archive.Live
	Begins(ctx context.Context) (eventlog.Position, error)
	KeepSegment(ctx context.Context, s domain.Segment) error
	Drop(ctx context.Context, below eventlog.Position, rule domain.Rule) (eventlog.Position, error)
	Restore(ctx context.Context, from eventlog.Position, events iter.Seq2[eventlog.Batch, error]) error
}

// engine opens one kind of store, repeatedly.
type engine struct {
	open  func() live
	close func() error
}

func onEmbedded(dir string, crash func(string)) *engine {
	var db *embedded.DB
	return &engine{
		open: func() live {
			var err error
			// There is no power cut: commits need not wait for the disk.
			if db, err = embedded.Open(dir, embedded.Options{Crash: crash, AllowDataLoss: true}); err != nil {
				panic(err)
			}
			return db.Log()
		},
		close: func() error { return db.Close() },
	}
}

// part is the number of positions in each of the first partitions.
const part = 16

// onPostgres is a database whose first partitions are small.
func onPostgres(url string, crash func(string)) *engine {
	var db *postgres.DB
	return &engine{
		open: func() live {
			var err error
			if db, err = postgres.Open(context.Background(), url, postgres.Options{Crash: crash}); err != nil {
				panic(err)
			}
			return db.Log
		},
		close: func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			return db.Close(ctx)
		},
	}
}

// postgresURL makes a database with its tables and small partitions.
func postgresURL(t testing.TB) string {
	t.Helper()
	url := testenv.Postgres(t)
	db, err := postgres.Open(t.Context(), url, postgres.Options{})
	check(t, err)
	check(t, db.Migrate(t.Context()))
	check(t, db.Close(t.Context()))
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	for _, text := range []string{fmt.Sprintf(`SELECT log.extend(%d, %d)`, 25*part, part), `SELECT log.extend(40000, 100000)`} {
		_, err = conn.Exec(t.Context(), text)
		check(t, err)
	}
	check(t, conn.Close(t.Context()))
	return url
}

// engines runs a test on each kind of store.
func engines(t *testing.T, run func(t *testing.T, e *engine)) {
	t.Run("embedded", func(t *testing.T) { run(t, onEmbedded(t.TempDir(), nil)) })
	t.Run("postgres", func(t *testing.T) { run(t, onPostgres(postgresURL(t), nil)) })
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// archiving returns an archiver of a store, with segments of part positions of any age.
func archiving(store live, files *archive.Files) *archiver.Archiver {
	return &archiver.Archiver{
		Log: archive.NewStore(store, files), Store: store, Files: files, Settings: archiver.Settings{Segment: part},
		Now: time.Now, Random: rand.Reader, Logger: slog.New(slog.DiscardHandler), Actor: eventlog.Meta{Actor: "test"},
	}
}

// fill appends to streams: some transactions that end, some that do not, and one group.
func fill(t testing.TB, a *archiver.Archiver, streams int) {
	t.Helper()
	for i := range streams {
		stream := eventlog.Stream(fmt.Sprintf("tx-1-%04d", i))
		names := []string{"tx.accepted.v1", "tx.mined.v1", "tx.finalized.v1", "tx.payload_erased.v1"}
		if i%5 == 0 {
			names = names[:2]
		}
		for v, name := range names {
			_, err := a.Log.Append(t.Context(), stream, eventlog.Version(v), eventlog.Event{
				ID: eventlog.DeriveID(stream, eventlog.ID{1}, v), Name: name, Data: fmt.Appendf(nil, `{"n": %d}`, i), Meta: eventlog.Meta{Actor: "test", Link: eventlog.Link{byte(i), byte(v)}},
			})
			check(t, err)
		}
		_, err := a.Log.Append(t.Context(), "group-1", eventlog.Version(i), eventlog.Event{ID: eventlog.DeriveID("group-1", eventlog.ID{2}, i), Name: "group.joined.v1", Data: []byte(`{}`)})
		check(t, err)
	}
}

// all reads the whole log.
func all(t testing.TB, a *archiver.Archiver) (events []eventlog.Recorded) {
	t.Helper()
	for b, err := range a.Log.ReadAll(t.Context(), 0, eventlog.Filter{}, 100) {
		check(t, err)
		events = append(events, b.Events...)
	}
	return events
}

package auditor_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver for the statements that damage a store
	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/notary"
	"github.com/tempo-watchtower/watchtower/domain/audit"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testChain chain.ID = 42431

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// backend is a filled and closed store.
type backend struct {
	name  string
	store config.Store
	// look opens the store unchanged.
	look func(t *testing.T, at func(s auditor.Source))
	// copied returns a copy, and a database connection that may change anything in it.
	copied func(t *testing.T) (backend, *sql.DB)
	// later is SQL that adds a microsecond to a time.
	later string
}

// each runs a test on both stores, filled with the histories of some transactions.
func each(t *testing.T, test func(t *testing.T, b backend)) {
	t.Run("embedded", func(t *testing.T) {
		dir := t.TempDir()
		db, err := embedded.Open(dir, embedded.Options{})
		check(t, err)
		fill(t, db.Log())
		check(t, db.Close())
		test(t, files(dir))
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := testenv.Postgres(t)
		db, err := postgres.Open(t.Context(), dsn, postgres.Options{Logger: slog.New(slog.DiscardHandler)})
		check(t, err)
		check(t, db.Migrate(t.Context()))
		partitioned(t, dsn)
		check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
		fill(t, db.Log)
		check(t, db.Close(t.Context()))
		test(t, database(dsn))
	})
}

// partitioned makes the first partitions of a log as small as the segments in these tests.
func partitioned(t *testing.T, dsn string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	check(t, err)
	for _, text := range []string{fmt.Sprintf(`SELECT log.extend(%d, %d)`, 3*part, part), `SELECT log.extend(40000, 100000)`} {
		_, err := conn.Exec(t.Context(), text)
		check(t, err)
	}
	check(t, conn.Close(t.Context()))
}

func files(dir string) backend {
	return backend{
		name: "embedded", store: config.Store{Engine: config.Embedded, Dir: dir}, later: "at + 1",
		look: func(t *testing.T, at func(s auditor.Source)) {
			i, err := embedded.Inspect(t.Context(), dir)
			check(t, err)
			defer func() { check(t, i.Close()) }()
			at(i)
		},
		copied: func(t *testing.T) (backend, *sql.DB) {
			to := t.TempDir()
			check(t, os.CopyFS(to, os.DirFS(dir)))
			db, err := sql.Open("sqlite", filepath.Join(to, "events.db"))
			check(t, err)
			return files(to), db
		},
	}
}

func database(dsn string) backend {
	return backend{
		name: "postgres", store: config.Store{Engine: config.Postgres, URL: config.NewSecret(dsn)}, later: "at + interval '1 microsecond'",
		look: func(t *testing.T, at func(s auditor.Source)) {
			i, err := postgres.Inspect(t.Context(), dsn)
			check(t, err)
			defer func() { check(t, i.Close()) }()
			at(i)
		},
		copied: func(t *testing.T) (backend, *sql.DB) {
			to := testenv.Postgres(t)
			admin, err := pgx.Connect(t.Context(), testenv.Need(t, testenv.PostgresVar))
			check(t, err)
			defer admin.Close(context.Background()) //nolint:errcheck // the statements have been run
			name := func(dsn string) string { return dsn[strings.LastIndex(dsn, "/")+1:] }
			for _, text := range []string{"DROP DATABASE " + name(to), "CREATE DATABASE " + name(to) + " TEMPLATE " + name(dsn)} {
				_, err := admin.Exec(t.Context(), text)
				check(t, err)
			}
			u, err := url.Parse(to)
			check(t, err)
			query := u.Query()
			query.Set("search_path", "log")
			u.RawQuery = query.Encode()
			db, err := sql.Open("pgx", u.String())
			check(t, err)
			return database(to), db
		},
	}
}

func hashOf(n int) chain.Hash { return chain.Hash{1, 31: byte(n)} }

// began is the time of the first event.
var began = time.Unix(1_800_000_000, 0).UTC()

// signer seals the logs of these tests.
func signer(t testing.TB) audit.Signer {
	t.Helper()
	s, err := audit.NewSigner(make([]byte, 32))
	check(t, err)
	return s
}

// fill records the histories of some transactions with seals between them, and one more after
// the last seal.
func fill(t *testing.T, log port.Store) {
	t.Helper()
	for n := range 4 {
		live(t, log, n)
	}
	seal(t, log)
	for n := 4; n < 7; n++ {
		live(t, log, n)
	}
	seal(t, log)
	live(t, log, 7)
}

// live records a transaction that waits for another, is accepted by a node, mined, un-mined,
// accepted again and sealed.
func live(t *testing.T, log port.Store, n int) {
	t.Helper()
	h := commands.Transactions{Store: log, Codec: tx.Codec(), Random: rand.Reader}
	at := began.Add(time.Duration(n) * time.Minute)
	hash := hashOf(n)
	block := chain.Block{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}, Time: uint64(at.Unix())}
	later := chain.Block{Number: 8, Hash: chain.Hash{8}, Parent: chain.Hash{9}, Time: uint64(at.Unix())}
	answer := func(class tx.Class, cause tx.Cause, text string) []tx.Answer {
		return []tx.Answer{{Endpoint: "node-a", Class: class, Cause: cause, Message: text, Took: 3 * time.Millisecond}}
	}
	for i, c := range []tx.Command{
		tx.Accept{Accepted: tx.Accepted{Chain: testChain, Hash: hash, Sender: chain.Address{1}, Signature: chain.Secp256k1, Nonce: uint64(n), EligibleAt: uint64(at.Unix()), Bytes: 100, RawHash: hash, At: at}},
		tx.Report{Attempt: 1, Answers: answer(tx.Retry, tx.NonceTooHigh, "nonce too high"), At: at.Add(time.Second)},
		tx.Report{Attempt: 4, Answers: answer(tx.Taken, "", ""), At: at.Add(5 * time.Second)},
		tx.SeeReceipt{Receipt: chain.Receipt{Block: block, Status: 1, GasUsed: 21000}, At: at.Add(6 * time.Second)},
		tx.LoseBlock{Was: block, Now: later, At: at.Add(7 * time.Second)},
		tx.Report{Attempt: 5, Answers: answer(tx.Unknown, tx.Unreachable, "timeout"), At: at.Add(8 * time.Second)},
		tx.SeeReceipt{Receipt: chain.Receipt{Block: later, Status: 1, GasUsed: 21000}, At: at.Add(9 * time.Second)},
		tx.Finalize{Final: later, At: at.Add(10 * time.Second)},
	} {
		o, err := handler.Begin(rand.Reader, eventlog.Meta{Correlation: eventlog.ID{byte(n + 1)}, Causation: eventlog.ID{9, byte(i)}, Actor: "tester", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
		check(t, err)
		r, err := h.Handle(t.Context(), tx.Stream(testChain, hash), c, o)
		check(t, err)
		if r.Added != 1 {
			t.Fatalf("command %d has added %d events", i, r.Added)
		}
	}
}

// seal runs a notary until the whole log is sealed.
func seal(t *testing.T, log port.Store) {
	t.Helper()
	head, err := log.Head(t.Context())
	check(t, err)
	sealed := make(chan eventlog.Position, 100)
	n := &notary.Notary{
		Seals: notary.Seals{Store: log, Codec: audit.Codec(), Random: rand.Reader}, Signer: signer(t), Settings: notary.Settings{Every: time.Minute, Events: 20},
		Sealed: func(through eventlog.Position) { sealed <- through }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	for at := range sealed {
		if at >= head {
			break
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// keys are the trusted keys.
func keys(t testing.TB) []audit.Key { return []audit.Key{signer(t).Key()} }

// exported returns a whole log as JSON lines.
func (b backend) exported(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	b.look(t, func(s auditor.Source) {
		_, err := auditor.Export(t.Context(), s, auditor.Selection{}, &out)
		check(t, err)
	})
	return out.Bytes()
}

// verify checks the log against its links and seals.
func (b backend) verify(t *testing.T, o auditor.Options) (report auditor.Report, err error) {
	t.Helper()
	b.look(t, func(s auditor.Source) { report, err = auditor.Verify(t.Context(), s, o) })
	return report, err
}

func (b backend) lastSeal(t *testing.T) (last audit.Sealed) {
	t.Helper()
	b.look(t, func(s auditor.Source) {
		var err error
		last, err = auditor.LastSeal(t.Context(), s)
		check(t, err)
	})
	return last
}

// streamOf returns the name of the n-th transaction's stream.
func streamOf(n int) string { return fmt.Sprint(tx.Stream(testChain, hashOf(n))) }

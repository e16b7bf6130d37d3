package delivery

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/tail"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/domain/payload"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/storetest/linear"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
	"github.com/tempo-watchtower/watchtower/projections/delivery/transactions"
)

// remembered is a configuration that remembers requests for longer than a test takes.
func remembered(c Config, r rest.Requests) Config {
	c.Idempotency = rest.Idempotency{Requests: r, Keep: time.Hour, Hold: time.Hour}
	c.Now = time.Now
	return c
}

// embeddedReplicas starts several handlers on one embedded store. With apart, each remembers
// requests by itself.
func embeddedReplicas(t *testing.T, dir string, n int, apart bool) (urls []string) {
	t.Helper()
	db := openEmbedded(t, dir)
	for i := range n {
		requests := db.Requests()
		if apart && i > 0 {
			requests = openEmbedded(t, "").Requests()
		}
		c := remembered(testConfig(t, db, time.Now), requests)
		urls = append(urls, "http://"+serve(t, New(c), c.Limits))
	}
	return urls
}

func openEmbedded(t *testing.T, dir string) *embedded.DB {
	t.Helper()
	db, err := embedded.Open(dir, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := projections.Migrate(t.Context(), db.View(), migrations.View); err != nil {
		t.Fatal(err)
	}
	return db
}

// postgresReplicas starts several handlers, each with its own connections to one database.
func postgresReplicas(t *testing.T, n int) (urls []string, admin *pgx.Conn) {
	t.Helper()
	url := testenv.Postgres(t)
	for i := range n {
		db, err := postgres.Open(t.Context(), url, postgres.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := db.Close(ctx); err != nil {
				t.Error(err)
			}
		})
		if i == 0 {
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := projections.Migrate(t.Context(), db.View(), migrations.View); err != nil {
				t.Fatal(err)
			}
		}
		master, err := payload.NewMaster(bytes.Repeat([]byte{7}, payload.KeyBytes))
		if err != nil {
			t.Fatal(err)
		}
		c := remembered(Config{
			Config: rest.Config{
				Transient: postgres.Transient, Limits: rest.DefaultLimits(), CursorKey: bytes.Repeat([]byte{9}, rest.CursorKeyBytes),
				Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
			},
			Submit: &commands.Submit{
				Transactions: commands.Transactions{Store: db.Log, Codec: tx.Codec(), Random: rand.Reader},
				Vault:        commands.Vault{Rows: db.Payloads, Master: master, Random: rand.Reader},
				Decoders:     map[chain.ID]func([]byte) (chain.Signed, error){testChain: decode},
				Grouping:     commands.GroupExplicit, ExpiringWindow: 30 * time.Second,
				Slots: make(chan struct{}, runtime.GOMAXPROCS(0)), Now: time.Now,
			},
			Query: transactions.Query{DB: db.View()}, Board: db.Work, Tail: tail.New(db.Log, tx.Codec(), slog.New(slog.DiscardHandler)),
		}, db.Requests)
		urls = append(urls, "http://"+serve(t, New(c), c.Limits))
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return urls, conn
}

// cutting ends all other sessions of the database, again and again until over is called.
func cutting(t *testing.T, admin *pgx.Conn) (over func() int) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	ended := 0
	running.Go(func() {
		tick := time.NewTicker(150 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var n int
			if err := admin.QueryRow(context.Background(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&n); err != nil {
				t.Error(err)
				return
			}
			ended += n
		}
	})
	return sync.OnceValue(func() int {
		stop()
		running.Wait()
		return ended
	})
}

// submissions are transactions to be submitted repeatedly.
func submissions(t *testing.T, n int) (all []linear.Signed) {
	t.Helper()
	key := newKey(t)
	for i := range n {
		raw := signed(t, key, testChain, uint64(i))
		all = append(all, linear.Signed{Hash: chain.Keccak(raw), Body: submissionOf(testChain, raw)})
	}
	return all
}

// askAll lets clients submit to the replicas, and judges the answers.
func askAll(t *testing.T, urls []string, n int) (h linear.Submits, hashes, keys linear.Verdict) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h = linear.AskSubmits(ctx, urls, submissions(t, n), 12, 1)
	return h, h.JudgeHashes(), h.JudgeKeys()
}

// The same transactions and keys are sent to several replicas at once. One request is the
// first, and one executes each key's request. All other answers follow from these, as if the
// requests had come one after another.
func TestSubmitsAreLinearizable(t *testing.T) {
	judge := func(t *testing.T, urls []string, n int) {
		t.Helper()
		h, hashes, keys := askAll(t, urls, n)
		all, open := h.Len()
		t.Logf("%d requests, %d of unknown outcome; %d carried out, %d answered again, %d running, %d differ", all, open,
			h.Answers(linear.Carried), h.Answers(linear.Replayed), h.Answers(linear.Running), h.Answers(linear.Differs))
		for what, v := range map[string]linear.Verdict{"hashes": hashes, "keys": keys} {
			if v.Wrong == "" {
				continue
			}
			path := filepath.Join(t.ArtifactDir(), what+".html")
			picture, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer picture.Close() //nolint:errcheck // Draw tells
			t.Errorf("not linearizable: %s; drawn in %s, which go test -artifacts keeps: %v", v.Wrong, path, v.Draw(picture))
		}
		if h.Answers(linear.Carried) < all/10 || min(h.Answers(linear.Replayed), h.Answers(linear.Differs)) == 0 {
			t.Error("too little happened for a verdict")
		}
	}
	t.Run("embedded, file", func(t *testing.T) { judge(t, embeddedReplicas(t, t.TempDir(), 3, false), 24) })
	t.Run("embedded, memory", func(t *testing.T) { judge(t, embeddedReplicas(t, "", 3, false), 24) })
	t.Run("postgres", func(t *testing.T) {
		urls, _ := postgresReplicas(t, 3)
		judge(t, urls, 24)
	})
	t.Run("postgres, sessions end", func(t *testing.T) {
		urls, admin := postgresReplicas(t, 3)
		over := cutting(t, admin)
		defer over()
		judge(t, urls, 60)
		if n := over(); n < 5 {
			t.Errorf("only %d sessions were ended: nothing was tested", n)
		}
	})
}

// Replicas that remember requests each by itself are judged wrong.
func TestLocalMemoryIsJudgedWrong(t *testing.T) {
	_, hashes, keys := askAll(t, embeddedReplicas(t, "", 3, true), 24)
	if hashes.Wrong != "" {
		t.Error("transactions are accepted once all the same:", hashes.Wrong)
	}
	if keys.Wrong == "" || keys.Undecided {
		t.Errorf("keys: %q", keys.Wrong)
	}
}

package main_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/verify"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// engineVar restricts the process tests to one store, named like the subtest. Tests that write
// to a store's own tables do not work with a log elsewhere.
const engineVar = "WATCHTOWER_TEST_ENGINE"

// eventStore has its log in a double of EventStoreDB, or in a given real server, and the rest in
// Postgres.
func eventStore(t *testing.T, dir string) []string {
	url := os.Getenv(testenv.EventStoreVar)
	if url == "" {
		url = eventStoreDouble(t).URL()
	}
	return eventStoreAt(t, dir, url)
}

func eventStoreDouble(t *testing.T) *esdbtest.Server {
	t.Helper()
	server, err := esdbtest.New(esdbtest.Options{})
	check(t, err)
	t.Cleanup(server.Stop)
	return server
}

func eventStoreAt(t *testing.T, dir, url string) []string {
	join := "?"
	if strings.Contains(url, "?") {
		join = "&"
	}
	return []string{
		"--store", url + join + "streamPrefix=" + testenv.Random(6) + ".", "--database", testenv.Postgres(t),
		"--vault-key-file", filepath.Join(dir, "vault.key"),
	}
}

// storedHere skips a test that needs the log in Postgres or SQLite, with the reason why.
func storedHere(t *testing.T, why string) {
	t.Helper()
	if os.Getenv(engineVar) == "eventstoredb" {
		testenv.Unsuited(t, why)
	}
}

// allEngines is engines plus the event store.
func allEngines(t *testing.T, test func(t *testing.T, store func(t *testing.T, dir string) []string)) {
	engines(t, test)
	if os.Getenv(engineVar) == "" { // otherwise engines decides
		t.Run("eventstoredb", func(t *testing.T) {
			t.Parallel()
			test(t, eventStore)
		})
	}
}

// eventsURL is the URL of the event store, if the log is in one.
func (w *world) eventsURL() string {
	if strings.HasPrefix(w.store[1], "esdb") {
		return w.store[1]
	}
	return ""
}

// inspectBeside opens log and database of a world with an event store, read-only.
func (w *world) inspectBeside(ctx context.Context) (verify.Store, error) {
	log, err := eventstoredb.Inspect(ctx, w.eventsURL(), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	_, dsn := w.engine()
	rows, err := postgres.Inspect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return app.Beside{Store: rows, Log: log}, nil
}

// The event store goes down under load and returns, loses replies and cuts reads. No
// acknowledged payment is lost, none is made twice, and everything ends.
func TestEventStoreInTrouble(t *testing.T) {
	t.Parallel()
	server := eventStoreDouble(t)
	w := newWorld(t, func(t *testing.T, dir string) []string { return eventStoreAt(t, dir, server.URL()) }, "--block-time", "1")
	s := w.service(t)
	check(t, s.Start(w.ctx))
	payments, to := rig.Payments(9100, 300)
	server.Trouble(esdbtest.Trouble{Seed: 3, LoseReplies: .02, LoseAppends: .02, CutReads: .02})
	acked := loadAnd(w.ctx, s, payments, 8, 50, func() {
		server.Stop()
		for health(w.ctx, s.URL) == 200 && w.ctx.Err() == nil {
		}
		if err := server.Start(); err != nil {
			t.Error(err)
		}
	})
	for left := payments; len(left) > 0 && w.ctx.Err() == nil; { // clients repeat requests without an answer
		again := left[:0:0]
		for _, p := range left {
			if !acked[p.Hash] {
				again = append(again, p)
			}
		}
		left, acked = again, load(w.ctx, s, again, 8)
	}
	w.delivered(t, s.URL, payments, rig.Executed)
	server.Trouble(esdbtest.Trouble{})
	w.paidOnce(t, to, len(payments))
	if met := server.Met(); met.LostReplies == 0 || met.LostAppends == 0 || met.CutReads == 0 {
		t.Errorf("too little trouble for a verdict: %+v", met)
	}
	check(t, s.Stop(w.ctx))
}

// Two replicas share an event store. The owner of the work is killed, and the other goes on.
func TestEventStoreReplicaKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eventStore, "--block-time", "1")
	first, second := w.pair(t)
	payments, to := rig.Payments(9201, 100)
	half := len(payments) / 2
	w.submit(t, first, payments[:half], 8)
	killed := time.Now()
	first.Kill()
	w.submit(t, second, payments[half:], 8)
	w.delivered(t, second.URL, payments, rig.Executed)
	t.Logf("all was executed %v after the kill", time.Since(killed))
	w.paidOnce(t, to, len(payments))
	check(t, second.Stop(w.ctx))
}

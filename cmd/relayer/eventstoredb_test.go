package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// engineVar restricts the process tests to one store. The tests of cmd/watchtower read it too.
const engineVar = "WATCHTOWER_TEST_ENGINE"

// inEventStoreOnly reports whether every process test keeps its log in an event store.
func inEventStoreOnly() bool { return os.Getenv(engineVar) == "eventstoredb" }

// eventStore returns the flags for a log in the EventStoreDB that [testenv.EventStoreVar]
// names, or else in a double of one, with Postgres for the rest.
func eventStore(t *testing.T, dir string) []string {
	t.Helper()
	url := os.Getenv(testenv.EventStoreVar)
	if url == "" {
		double, err := esdbtest.New(esdbtest.Options{})
		check(t, err)
		t.Cleanup(double.Stop)
		url = double.URL()
	}
	return eventStoreAt(t, dir, url)
}

// eventStoreAt returns the flags for a log of its own in the server of a URL.
func eventStoreAt(t *testing.T, dir, url string) []string {
	t.Helper()
	join := "?"
	if strings.Contains(url, "?") {
		join = "&"
	}
	return []string{
		"--store", url + join + "streamPrefix=" + testenv.Random(6) + ".", "--database", testenv.Postgres(t),
		"--vault-key-file", filepath.Join(dir, "vault.key"),
	}
}

// database returns the place of read models and queues: the store, unless it is an event
// store with a database beside it.
func (w *world) database() string {
	if w.flags[2] == "--database" {
		return w.flags[3]
	}
	return w.flags[1]
}

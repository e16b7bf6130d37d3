package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	domain "github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/examples"
	"github.com/tempo-watchtower/watchtower/infra/archive"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

// Events that the store has dropped are exported too, from the archive given on the command
// line or in the service's environment variable.
func TestExportOfAnArchivedLog(t *testing.T) {
	dir, shelf := t.TempDir(), t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	const events, dropped = 30, 20
	for i := range events {
		stream := eventlog.Stream(fmt.Sprintf("tx-%d", i))
		_, err := db.Log().Append(t.Context(), stream, 0, eventlog.Event{
			ID: eventlog.DeriveID(stream, eventlog.ID{}, 0), Name: "test.happened.v1", Data: []byte(`{}`),
		})
		must(t, err)
	}
	drop(t, db.Log(), shelf, dropped)

	for name, say := range map[string]func(t *testing.T) (args []string){
		"argument": func(*testing.T) []string { return []string{"-archive", shelf} },
		"variable": func(t *testing.T) []string {
			t.Setenv("WATCHTOWER_ARCHIVE", "file:"+shelf)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(say(t), "-store", dir)
			var store examples.Store
			flags := flag.NewFlagSet(name, flag.ContinueOnError)
			store.Flags(flags)
			must(t, flags.Parse(args))
			to := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, store, to, feed.Options{Group: name}) }()
			waitForLines(t, filepath.Join(to, "events-000000000000.jsonl"), events)
			cancel()
			must(t, <-ended)
		})
	}
}

// drop moves the first events of a log to a folder.
func drop(t *testing.T, log *embedded.Log, shelf string, most int) {
	t.Helper()
	past := eventlog.Position(most + 1)
	files := archive.NewFiles(archive.Dir(shelf), nil)
	segment, err := files.Write(t.Context(), eventlog.ID{1}, 1, past, log.ReadAll(t.Context(), 0, eventlog.Filter{}, 7))
	must(t, err)
	must(t, log.KeepSegment(t.Context(), segment))
	begins, err := log.Drop(t.Context(), past, domain.Rule{{Prefix: "tx-"}})
	must(t, err)
	if begins != past {
		t.Fatalf("the log begins at %d", begins)
	}
}

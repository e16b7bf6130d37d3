package main

import (
	"context"
	"io"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
)

// Appended events exist when the program runs again on the same file.
func TestKeeps(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events")
	for round := range 3 {
		ctx, stop := context.WithCancel(t.Context())
		out, in := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- run(ctx, []string{"--listen", "127.0.0.1:0", "--data", file}, in) }()
		said := make([]byte, 200)
		n, err := out.Read(said)
		if err != nil {
			t.Fatal(err)
		}
		url := regexp.MustCompile(`esdb://\S+`).Find(said[:n])
		log, err := eventstoredb.Open(ctx, string(url), eventstoredb.Options{})
		if err != nil {
			t.Fatalf("%s: %v", said[:n], err)
		}
		a, err := log.Append(ctx, "one", eventlog.Version(round), eventlog.Event{ID: eventlog.ID{byte(round + 1)}, Name: "test.happened.v1", Data: []byte("{}")})
		if err != nil || a.Version != eventlog.Version(round+1) {
			t.Errorf("%+v, %v", a, err)
		}
		if err := log.Close(ctx); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

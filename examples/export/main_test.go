package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/examples"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/feed"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Three runs, each with a new group, deliver everything again. After the first run the last
// line is torn. Each event is still in the file once, in order.
func TestExport(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	name := filepath.Join(to, "events-000000000000.jsonl")
	total := 0
	for round := range 3 {
		for i := range 10 {
			stream := eventlog.Stream(fmt.Sprintf("tx-%d", i))
			_, err := db.Log().Append(t.Context(), stream, eventlog.Version(round), eventlog.Event{
				ID: eventlog.DeriveID(stream, eventlog.ID{}, round), Name: "test.happened.v1", Data: fmt.Appendf(nil, `{"n":%d}`, round),
			})
			must(t, err)
			total++
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, examples.Store{At: dir}, to, feed.Options{Group: fmt.Sprint(round)}) }()
		waitForLines(t, name, total)
		cancel()
		must(t, <-ended)
		if round == 0 {
			text, err := os.ReadFile(name)
			must(t, err)
			must(t, os.WriteFile(name, text[:len(text)-5], 0o600)) // like a power failure
		}
	}
	text, err := os.ReadFile(name)
	must(t, err)
	for i, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var l Line
		must(t, json.Unmarshal(line, &l))
		want := Line{eventlog.Position(i + 1), eventlog.Stream(fmt.Sprintf("tx-%d", i%10)), eventlog.Version(i/10 + 1), "test.happened.v1", l.At, l.ID, json.RawMessage(fmt.Sprintf(`{"n":%d}`, i/10))}
		if fmt.Sprint(l) != fmt.Sprint(want) {
			t.Errorf("line %d: %v, want %v", i, l, want)
		}
	}
}

// waitForLines waits until a file has want lines.
func waitForLines(t *testing.T, name string, want int) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(name)
		if err == nil && bytes.Count(text, []byte("\n")) == want {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%d lines are not there: %d are, %v", want, bytes.Count(text, []byte("\n")), err)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// startCluster runs esdouble cluster until the test ends, and returns its control address.
func startCluster(t *testing.T, args ...string) (at string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	args = append([]string{"cluster", "--base-port", "0", "--control", "127.0.0.1:0"}, args...)
	go func() { done <- run(ctx, args, in) }()
	printed := make([]byte, 400)
	n, err := out.Read(printed)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`--at (\S+)`).FindSubmatch(printed[:n])
	if found == nil {
		t.Fatalf("%s", printed[:n])
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return string(found[1]), stop
}

// driven runs esdouble control and returns the lines that it prints.
func driven(t *testing.T, at string, args ...string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append([]string{"control", "--at", at}, args...), &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

// awaitLeader waits for a leader, and returns its number.
func awaitLeader(t *testing.T, at string) string {
	t.Helper()
	for t.Context().Err() == nil {
		for _, line := range driven(t, at, "status") {
			if number, ok := strings.CutSuffix(line, " leader"); ok {
				return strings.Fields(number)[0]
			}
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatal("no leader")
	return ""
}

// Tests can control the double like a real cluster, and it keeps its log for the next run.
func TestCluster(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--dir", dir, "--election", "50ms..100ms", "--commit-delay", "0s..2ms", "--follower-lag", "0s", "--gossip-lag", "0s"}
	at, stop := startCluster(t, args...)
	status := driven(t, at, "status")
	if len(status) != 4 || !regexp.MustCompile(`^1 127\.0\.0\.1:\d+ leader$`).MatchString(status[0]) ||
		!regexp.MustCompile(`^3 127\.0\.0\.1:\d+ follower$`).MatchString(status[2]) {
		t.Fatalf("%q", status)
	}
	log, err := eventstoredb.Open(t.Context(), status[3], eventstoredb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, log, 0)
	driven(t, at, "resign", "1")
	if leader := awaitLeader(t, at); leader == "1" {
		t.Error("node 1 leads after its resignation")
	}
	appendTo(t, log, 1)
	leader := awaitLeader(t, at)
	driven(t, at, "kill-node", leader)
	if line := driven(t, at, "status")[leader[0]-'1']; !strings.HasSuffix(line, " dead") {
		t.Error(line)
	}
	awaitLeader(t, at)
	appendTo(t, log, 2)
	driven(t, at, "start-node", leader)
	for _, wrong := range [][]string{{"resign", leader}, {"kill-node", "4"}, {"kill-node"}, {"none"}, {"start-node", leader}} {
		if err := run(t.Context(), append([]string{"control", "--at", at}, wrong...), io.Discard); err == nil {
			t.Errorf("%q succeeds", wrong)
		}
	}
	if err := log.Close(t.Context()); err != nil {
		t.Error(err)
	}
	stop()
	at, _ = startCluster(t, args...)
	if log, err = eventstoredb.Open(t.Context(), driven(t, at, "status")[3], eventstoredb.Options{}); err != nil {
		t.Fatal(err)
	}
	appendTo(t, log, 3)
	if err := log.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// appendTo appends an event to a stream at a version, and retries until it is known to be
// stored.
func appendTo(t *testing.T, log *eventstoredb.Log, version eventlog.Version) {
	t.Helper()
	e := eventlog.Event{ID: eventlog.ID{byte(version + 1)}, Name: "test.happened.v1", Data: []byte("{}")}
	for {
		a, err := log.Append(t.Context(), "one", version, e)
		if err == nil && a.Version == version+1 {
			return
		}
		if err == nil || t.Context().Err() != nil {
			t.Fatalf("%+v, %v", a, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// A range of durations is parsed in the form in which it is printed.
func TestInterval(t *testing.T) {
	for text, want := range map[string]string{"5ms": "5ms", "0s..20ms": "0s..20ms", "2s..1s": "error", "x": "error", "1s..": "error"} {
		i := &interval{&esdbcluster.Range{}}
		got := "error"
		if err := i.Set(text); err == nil {
			got = fmt.Sprint(i)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A web page cannot reach the control server, whose commands stop nodes.
func TestPagesControlNothing(t *testing.T) {
	cluster, err := esdbtest.NewCluster(esdbtest.Options{Cluster: esdbcluster.Hard(3)})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	server := httptest.NewServer(guarded(cluster))
	defer server.Close()
	for _, tt := range []struct {
		host, header, value string
		status              int
	}{
		{"", "Content-Type", "application/json", http.StatusNotFound}, // there is no node 99
		{"evil.example", "Content-Type", "application/json", http.StatusForbidden},
		{"", "Origin", "http://evil.example", http.StatusForbidden},
		{"", "Content-Type", "text/plain", http.StatusUnsupportedMediaType},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/kill-node/99", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = tt.host
		r.Header.Set(tt.header, tt.value)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != tt.status {
			t.Errorf("%s %s: %d, want %d", tt.host, tt.value, answer.StatusCode, tt.status)
		}
	}
}

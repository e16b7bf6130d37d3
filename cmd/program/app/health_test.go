package app_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
)

// /health reports the actual build and the configuration in force. Each value in this test
// differs from its default and from every other.
func TestHealthTellsTheSettings(t *testing.T) {
	began := time.Now().Unix()
	url := serveBuild(t, app.Build{Version: "0.2.6", GitSHA: "abc123", Timestamp: "2026-02-03T12:34:56Z"},
		"--chains", "42431=http://127.0.0.1:9,http://127.0.0.1:10;1=http://127.0.0.1:11",
		"--scheduler-poll-interval", "1100ms", "--scheduler-lease-ttl", "7500ms", "--scheduler-max-concurrency", "10",
		"--scheduler-retry-min", "100ms", "--scheduler-retry-max", "1001ms",
		"--scheduler-expiry-soon-window", "1800500ms", "--scheduler-expiry-soon-retry-max", "4s",
		"--watcher-poll-interval", "1200ms", "--watcher-use-websocket=false",
		"--broadcaster-fanout", "3", "--broadcaster-timeout", "500ms", "--api-max-body-bytes", "1048577")
	var got map[string]any
	if status := ask(t, http.MethodGet, url+"/health", "", "", &got); status != http.StatusOK {
		t.Fatalf("answers %d: %v", status, got)
	}
	now, started, up := got["now"].(float64), got["startedAt"].(float64), got["uptimeSeconds"].(float64)
	if int64(started) < began-1 || now < started || up > now-started || int64(now) > time.Now().Unix() {
		t.Errorf("started at %v, up %v at %v; the test began at %d", started, up, now, began)
	}
	for _, member := range []string{"now", "startedAt", "uptimeSeconds", "deployment", "endpoints", "heads", "readers"} {
		delete(got, member) // changes from moment to moment, or is beyond the specification
	}
	type object = map[string]any
	want := object{
		"status": "ok", "service": "tempo-watchtower", "version": "0.2.6",
		"build":  object{"gitSha": "abc123", "buildTimestamp": "2026-02-03T12:34:56Z"},
		"chains": []any{42431.0, 1.0}, "rpcEndpoints": 3.0,
		"scheduler": object{
			"pollIntervalMs": 1100.0, "leaseTtlSeconds": 7.5, "maxConcurrency": 10.0, "retryMinMs": 100.0, "retryMaxMs": 1001.0,
			"expirySoonWindowSeconds": 1800.5, "expirySoonRetryMaxMs": 4000.0,
		},
		"watcher": object{"pollIntervalMs": 1200.0, "useWebsocket": false}, "broadcaster": object{"fanout": 3.0, "timeoutMs": 500.0},
		"api": object{"maxBodyBytes": 1048577.0}, "dependencies": object{"database": object{"ok": true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// serveBuild runs a build of the service until the test ends, and returns its URL.
func serveBuild(t *testing.T, b app.Build, args ...string) string {
	t.Helper()
	c := settings(t, args...)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	listening, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- app.Serve(ctx, c, app.Options{
			Build: b, Log: slog.New(slog.DiscardHandler), Listening: func(public, _ net.Addr) { listening <- public },
		})
	}()
	select {
	case at := <-listening:
		t.Cleanup(func() { stop(); must(t, <-ended) })
		return "http://" + at.String()
	case err := <-ended:
		stop()
		t.Fatal(err)
		return ""
	}
}

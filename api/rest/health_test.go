package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

func TestHealth(t *testing.T) {
	s := newStack(t, func(c *Config) {
		h := &c.Health
		h.GitSHA, h.BuildTimestamp = "abc123", "2026-02-03T12:34:56Z"
		h.Chains = []chain.ID{testChain}
		h.Scheduler = SchedulerSettings{
			PollInterval: time.Second, LeaseTTL: 30 * time.Second, MaxConcurrency: 10,
			RetryMin: 100 * time.Millisecond, RetryMax: time.Second, ExpirySoonWindow: time.Hour, ExpirySoonRetryMax: 5 * time.Second,
		}
		h.Watcher = WatcherSettings{PollInterval: time.Second}
		h.Broadcaster = BroadcasterSettings{Fanout: 2, Timeout: 500 * time.Millisecond}
		h.Redis = func(context.Context) error { return nil }
		h.Endpoints = func() []Endpoint {
			return []Endpoint{{
				Chain: testChain, Name: "a", Healthy: true, Score: 0.75, Head: 9, State: "healthy", Breaker: "closed", Reading: true,
				LatencyMS: 1.5, ErrorRate: 0.25, InFlight: 3, MaxInFlight: 64, Rate: &EndpointRate{10, 20, 7.5}, Daily: &EndpointDaily{1000, 900}, Withheld: 4,
				LastError: "HTTP 502", LastErrorAt: 1_800_000_000,
			}, {Chain: testChain, Name: "b", State: "foreign", Breaker: "closed", Lag: 1, Lead: 2, Trips: 3, Contradictions: 4, Differences: 5, Problem: "serves chain 1"}}
		}
		h.Heads = func() []Head { return []Head{{Chain: testChain, Head: 9, Final: 7}} }
		h.Readers = func(context.Context) ([]Reader, error) {
			return []Reader{{Name: "transactions", Position: 5, Head: 7, Lag: 2}}, nil
		}
	})
	res := s.get("/health")
	want := fmt.Sprintf(`{"status":"ok","service":"tempo-watchtower","version":"0.1.0",
		"build":{"gitSha":"abc123","buildTimestamp":"2026-02-03T12:34:56Z"},
		"now":%d,"startedAt":%d,"uptimeSeconds":60,"chains":[42431],"rpcEndpoints":2,
		"scheduler":{"pollIntervalMs":1000,"leaseTtlSeconds":30,"maxConcurrency":10,"retryMinMs":100,"retryMaxMs":1000,"expirySoonWindowSeconds":3600,"expirySoonRetryMaxMs":5000},
		"watcher":{"pollIntervalMs":1000,"useWebsocket":false},"broadcaster":{"fanout":2,"timeoutMs":500},"api":{"maxBodyBytes":1048576},
		"dependencies":{"database":{"ok":true},"redis":{"ok":true}},
		"endpoints":[{"chainId":42431,"name":"a","healthy":true,"score":0.75,"head":9,"state":"healthy","breaker":"closed","reading":true,"lag":0,"lead":0,
		"latencyMs":1.5,"errorRate":0.25,"inFlight":3,"maxInFlight":64,"rate":{"perSecond":10,"burst":20,"left":7.5},"daily":{"calls":1000,"left":900},
		"trips":0,"contradictions":0,"differences":0,"withheld":4,"lastError":"HTTP 502","lastErrorAt":1800000000},
		{"chainId":42431,"name":"b","healthy":false,"score":0,"head":0,"state":"foreign","breaker":"closed","reading":false,"lag":1,"lead":2,
		"latencyMs":0,"errorRate":0,"inFlight":0,"maxInFlight":0,"trips":3,"contradictions":4,"differences":5,"withheld":0,"problem":"serves chain 1"}],
		"heads":[{"chainId":42431,"head":9,"final":7}],
		"readers":[{"name":"transactions","position":5,"head":7,"lag":2}]}`, testTime.Unix(), testTime.Unix()-60)
	want = strings.NewReplacer("\n", "", "\t", "").Replace(want)
	if diff := cmp.Diff(want, strings.TrimSpace(string(res.body))); res.status != http.StatusOK || diff != "" {
		t.Errorf("answered %d (want -, got +):\n%s", res.status, diff)
	}
}

func TestHealthWhenSomethingIsDown(t *testing.T) {
	down := errors.New("dial postgres://user:secret@10.0.0.1: refused")
	for _, tt := range []struct {
		name            string
		database, redis error
		configured      bool
		health, ready   int
		dependencies    string
	}{
		{"all up, no Redis", nil, nil, false, 200, 200, `{"database":{"ok":true}}`},
		{"all up", nil, nil, true, 200, 200, `{"database":{"ok":true},"redis":{"ok":true}}`},
		{"Redis down", nil, down, true, 503, 200, `{"database":{"ok":true},"redis":{"ok":false}}`},
		{"database down", down, nil, true, 503, 503, `{"database":{"ok":false},"redis":{"ok":true}}`},
		{"both down", down, down, true, 503, 503, `{"database":{"ok":false},"redis":{"ok":false}}`},
		{"database down, no Redis", down, nil, false, 503, 503, `{"database":{"ok":false}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStack(t, func(c *Config) {
				c.Health.Database = func(context.Context) error { return tt.database }
				if tt.configured {
					c.Health.Redis = func(context.Context) error { return tt.redis }
				}
			})
			res, status := s.get("/health"), "ok"
			if tt.health != http.StatusOK {
				status = "degraded"
			}
			if res.status != tt.health || !bytes.Contains(res.body, []byte(`"dependencies":`+tt.dependencies)) ||
				!bytes.Contains(res.body, []byte(`"status":"`+status+`"`)) || !bytes.Contains(res.body, []byte(`"build":{}`)) {
				t.Errorf("health: %v", res)
			}
			if bytes.Contains(res.body, []byte("secret")) {
				t.Errorf("the inside is told: %s", res.body)
			}
			if res := s.get("/readyz"); res.status != tt.ready {
				t.Errorf("ready: %v", res)
			}
			if res := s.get("/livez"); res.status != http.StatusOK {
				t.Errorf("live: %v", res)
			}
		})
	}
}

// A dependency that does not answer counts as down after a short timeout.
func TestHealthOfADependencyThatHangs(t *testing.T) {
	s := newStack(t, func(c *Config) {
		c.Health.Database = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	})
	began := time.Now()
	if res := s.get("/health"); res.status != http.StatusServiceUnavailable || time.Since(began) > healthTimeout+time.Second {
		t.Errorf("after %s: %v", time.Since(began), res)
	}
}

// A reader that cannot get past an event is reported in /health; /readyz stays ready.
func TestHealthOfAReaderThatCannotGoOn(t *testing.T) {
	s := newStack(t, func(c *Config) {
		c.Health.Readers = func(context.Context) ([]Reader, error) {
			return []Reader{{Name: "scheduler", Position: 5, Head: 7, Lag: 2, Problem: "position 6: unknown event"}}, nil
		}
	})
	res := s.get("/health")
	if res.status != http.StatusServiceUnavailable || !strings.Contains(string(res.body), `"status":"degraded"`) ||
		!strings.Contains(string(res.body), `"lag":2,"problem":"position 6: unknown event"`) {
		t.Errorf("answered %d %s", res.status, res.body)
	}
	if res := s.get("/readyz"); res.status != http.StatusOK {
		t.Errorf("/readyz: %v", res)
	}
}

func TestReadyWhileStopping(t *testing.T) {
	var stopping atomic.Bool
	s := newStack(t, func(c *Config) { c.Health.Stopping = stopping.Load })
	if res := s.get("/readyz"); res.status != http.StatusOK {
		t.Errorf("before: %v", res)
	}
	stopping.Store(true)
	if res := s.get("/readyz"); res.status != http.StatusServiceUnavailable {
		t.Errorf("after: %v", res)
	}
}

// The metrics have a separate listener, with the same problems.
func TestInternal(t *testing.T) {
	s := newStack(t)
	exposition := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "up 1") })
	s.addr = serve(t, Internal(s.config, exposition), s.config.Limits)
	if res := s.ask("/metrics"); res.status != http.StatusOK || string(res.body) != "up 1\n" {
		t.Errorf("metrics: %v", res)
	}
	wantProblem(t, "elsewhere", s.ask("/v1/transactions"), http.StatusNotFound, ErrNotFound)
	answers, _ := s.raw("POST /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", patience)
	wantProblem(t, "POST", answers[0], http.StatusMethodNotAllowed, ErrMethodNotAllowed)
	public := newStack(t)
	wantProblem(t, "metrics in public", public.ask("/metrics"), http.StatusNotFound, ErrNotFound)
}

func TestProblemOfErrors(t *testing.T) {
	a := newAPI(Config{Transient: func(err error) bool { return err.Error() == "passes" }})
	for _, tt := range []struct {
		err  error
		code eventlog.Refusal
	}{
		{errors.New("x"), internal},
		{errors.New("passes"), unavailable},
		{fmt.Errorf("a: %w: %w", eventlog.ErrUnknown, context.DeadlineExceeded), OutcomeUnknown},
		{fmt.Errorf("a: %w", eventlog.ErrClosed), unavailable},
		{eventlog.Refusal("made-up"), internal},
		{&chain.Malformed{Fault: chain.FaultSignature, Detail: "d"}, invalidTransaction},
		{fmt.Errorf("a: %w", &chain.Malformed{Fault: chain.FaultTooLarge}), txTooLarge},
	} {
		if p := a.problem(tt.err); p.Code != string(tt.code) {
			t.Errorf("%v became %s", tt.err, p.Code)
		}
	}
}

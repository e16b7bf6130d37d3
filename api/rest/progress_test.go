package rest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// held is a front with routes whose answers wait until the test ends them.
type held struct {
	t       *testing.T
	handler http.Handler
	keys    ring
	resting chan struct{} // closed: requests on /v1/rest end their rest
	end     chan struct{} // closed: all requests end
}

// newHeld needs a synctest bubble.
func newHeld(t *testing.T, change ...func(*Config)) *held {
	h := &held{t: t, keys: newRing(t), resting: make(chan struct{}), end: make(chan struct{})}
	c := Config{
		Limits: DefaultLimits(), CursorKey: bytes.Repeat([]byte{9}, CursorKeyBytes), Now: time.Now, Random: rand.Reader,
		Log: slog.New(slog.DiscardHandler), Rates: Rates{Key: Rate{PerSecond: 1000, Burst: 1000}, Address: Rate{PerSecond: 1000, Burst: 1000}},
	}
	h.keys.config(&c)
	c.Limits.Connections = 4 * 10
	for _, change := range change {
		change(&c)
	}
	done := func(r Request) error { return r.Reply(http.StatusOK, struct{}{}) }
	until := func(r Request, over <-chan struct{}) {
		select {
		case <-over:
		case <-r.Context().Done(): // the test has failed
		}
	}
	route := func(path string, answer func(Request) error) Route {
		return Route{Method: http.MethodGet, Path: path, Scope: access.Read, Answer: answer}
	}
	h.handler = NewFront(c).Handler([]Route{
		route("/v1/slow", func(r Request) error { until(r, h.end); return done(r) }),
		route("/v1/panic", func(r Request) error { until(r, h.end); panic("on purpose") }),
		route("/v1/rest", func(r Request) error {
			wake, room := r.Rest()
			if !room {
				return ErrTooManyStreams
			}
			until(r, h.resting)
			wake()
			until(r, h.end)
			return done(r)
		}),
		{Method: http.MethodGet, Path: healthPath, Scope: Public, Answer: done},
	})
	return h
}

// send sends a request and waits until it is answered or holds still: then the answer is nil.
func (h *held) send(path, key string) *httptest.ResponseRecorder {
	w, answered := httptest.NewRecorder(), make(chan struct{})
	r := httptest.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
	if key != "" {
		r.Header.Set("X-API-Key", key)
	}
	go func() {
		defer close(answered)
		h.handler.ServeHTTP(w, r)
	}()
	synctest.Wait()
	select {
	case <-answered:
		return w
	default:
		return nil
	}
}

// fill sends requests until one is refused, and returns how many are in progress.
func (h *held) fill(path, key string) (n int) {
	h.t.Helper()
	for ; n < 1000; n++ {
		if w := h.send(path, key); w != nil {
			h.refused(w)
			return n
		}
	}
	h.t.Fatal("a thousand requests of one client are in progress")
	return n
}

func (h *held) refused(w *httptest.ResponseRecorder) {
	h.t.Helper()
	var p Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusTooManyRequests || p.Code != string(ErrRateLimited) || !p.Retryable || w.Header().Get("Retry-After") != "1" {
		h.t.Fatalf("answered %d %s, Retry-After %q, %v", w.Code, w.Body, w.Header().Get("Retry-After"), err)
	}
}

// finish ends all requests.
func (h *held) finish() {
	close(h.end)
	synctest.Wait()
	h.end = make(chan struct{})
}

// One client's requests in progress hold a quarter of the connections, with any of its
// keys, and with requests that end in any way. Other clients' requests, and monitors', are answered.
func TestRequestsInProgress(t *testing.T) {
	for path, how := range map[string]string{"/v1/slow": "answered", "/v1/panic": "panicked"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeld(t)
				greedy, _ := h.keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Client: "greedy"})
				another, _ := h.keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Client: "greedy"})
				other := h.keys.Scoped(access.Read)
				for range 2 { // the places are given back
					if n := h.fill(path, greedy); n != 10 {
						t.Errorf("%d requests of 40 connections are in progress, want 10", n)
					}
					h.refused(h.send(path, another))
					if w := h.send(healthPath, greedy); w == nil || w.Code != http.StatusOK {
						t.Error("/health counts")
					}
					if n := h.fill(path, other); n != 10 {
						t.Errorf("another client has %d in progress, want 10", n)
					}
					h.finish()
				}
			})
		})
	}
}

// Requests without a key count by address. Those without a rate, of this machine, leave a
// quarter of the connections, and a few may always be in progress.
func TestKeylessRequestsInProgress(t *testing.T) {
	for name, c := range map[string]struct {
		rate              Rate
		connections, want int
	}{
		"rate":                 {Rate{PerSecond: 1000, Burst: 1000}, 400, 100},
		"no rate":              {Rate{}, 400, 300},
		"few connections":      {Rate{PerSecond: 1000, Burst: 1000}, 4, progressLeast},
		"few, without a rate":  {Rate{}, 4, progressLeast},
		"the usual, by itself": {Rate{}, 1024, 768},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeld(t, func(on *Config) { on.Rates.Address, on.Limits.Connections = c.rate, c.connections })
				if n := h.fill("/v1/slow", ""); n != c.want {
					t.Errorf("%d requests are in progress, want %d", n, c.want)
				}
				h.finish()
			})
		})
	}
}

// A request that waits on purpose does not count as in progress meanwhile.
// When it goes on it counts as in progress, and is not refused.
func TestRequestsThatWaitCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(t)
		key := h.keys.Scoped(access.Read)
		for i := range 10 {
			if w := h.send("/v1/rest", key); w != nil {
				t.Fatalf("wait %d: %d %s", i, w.Code, w.Body)
			}
		}
		if w := h.send("/v1/rest", key); w == nil || w.Code != http.StatusServiceUnavailable {
			t.Errorf("one client waits as often as it likes")
		}
		if n := h.fill("/v1/slow", key); n != 10 {
			t.Errorf("beside 10 that wait %d are in progress, want 10", n)
		}
		close(h.resting)
		synctest.Wait()
		h.refused(h.send("/v1/rest", key))
		h.finish()
		if n := h.fill("/v1/slow", key); n != 10 {
			t.Errorf("after all have ended %d are in progress, want 10", n)
		}
		h.finish()
	})
}

// Of several calls in one request some wait: the request has its place back when none does.
func TestPlaceOfSeveralCalls(t *testing.T) {
	var of rests
	h := Holder{keyed: true, client: "shop"}
	of.add(h)
	p := &place{of: &of, holder: h}
	want := func(what string, n int) {
		t.Helper()
		if of.most() != n {
			t.Errorf("%s: %d in progress, want %d", what, of.most(), n)
		}
	}
	first, second := p.rest(), p.rest()
	want("two calls wait", 0)
	first()
	first()
	want("one call waits", 0)
	second()
	want("none waits", 1)
	last := p.rest()
	p.end()
	last()
	want("it has ended", 0)
}

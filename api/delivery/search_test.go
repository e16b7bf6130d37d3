package delivery

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rpcroute"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// handClock is a clock that moves when a test says so, and when a request pauses.
type handClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *handClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *handClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (c *handClock) pause(_ context.Context, d time.Duration) { c.pass(d) }

// slowStreams is a store in which the read of a stream takes two milliseconds, unless the stream is
// empty.
type slowStreams struct {
	port.Store
	clock *handClock
}

const slowRead = 2 * time.Millisecond

func (s slowStreams) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		first := true
		for recorded, err := range s.Store.ReadStream(ctx, stream, after) {
			if first {
				s.clock.pass(slowRead)
			}
			if first = false; !yield(recorded, err) {
				return
			}
		}
	}
}

// A request that names another client's transaction or group is answered at the same time as a
// request with an unknown id, although its search reads more.
func TestForeignTakesAsLongAsUnknown(t *testing.T) {
	clock := &handClock{at: testTime}
	s := newShared(t, func(c *Config) {
		c.Now, c.Pause, c.Rates.Key = clock.now, clock.pause, rest.Rate{PerSecond: 1, Burst: 10_000}
		c.Submit.Transactions.Store = slowStreams{c.Submit.Transactions.Store, clock}
	})
	paused, hadRead := 0, 0
	answer := func(req *http.Request) *httptest.ResponseRecorder {
		c, rec := s.config, httptest.NewRecorder()
		c.Pause = func(_ context.Context, d time.Duration) {
			if paused++; d < absentStep {
				hadRead++
			}
			clock.pass(d)
		}
		New(c).ServeHTTP(rec, req) // no owner is cached
		return rec
	}
	token, _ := s.keys.Create(access.Key{Scopes: scopesOfClients})
	foreign, unknown := s.naming(s.ann, payroll(0).Group()), s.naming(chain.Hash{0xab, 1}, chain.GroupID{0xab})
	for _, r := range allRoutes(s.config) {
		name := r.Method + " " + r.Path
		if r.Method == http.MethodPost {
			continue // a cancel of a group is refused without a search unless the owner signed it
		}
		for i := range foreign[name] {
			for _, target := range []string{unknown[name][i], foreign[name][i]} {
				req := httptest.NewRequestWithContext(t.Context(), r.Method, "http://127.0.0.1"+target, nil)
				req.Header.Set("X-API-Key", token)
				began, rec := clock.now(), answer(req)
				want := absentStep
				if strings.HasSuffix(target, "/groups") || strings.Contains(target, "&groupId=") {
					want = 0 // it names no transaction, and each event costs the same look-up
				}
				if took := clock.now().Sub(began); took != want {
					t.Errorf("%s %s: status %d after %s", r.Method, target, rec.Code, took)
				}
			}
		}
	}
	if hadRead < 5 || hadRead > paused/2 {
		t.Errorf("of %d searches, %d read something", paused, hadRead)
	}
}

// A call of JSON-RPC that finds nothing to show waits as a request by id does.
func TestCallsWaitForTheirSearch(t *testing.T) {
	clock := &handClock{at: testTime}
	s := newShared(t, func(c *Config) { c.Now, c.Pause = clock.now, clock.pause })
	s.config.RPC.Answer = func(ctx context.Context, r rpcroute.Request) ([]byte, error) {
		clock.pass(7 * time.Millisecond) // a node
		began, absent := clock.now(), r.Search()
		clock.pass(slowRead)
		absent(ctx)
		if took := clock.now().Sub(began); took != absentStep {
			t.Errorf("the call took %s", took)
		}
		return []byte("{}"), nil
	}
	token, _ := s.keys.Create(access.Key{Scopes: scopesOfClients})
	srv := httptest.NewServer(New(s.config)) // a recorder has no deadlines
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/rpc", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", token)
	req.Header.Set("Content-Type", "application/json")
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK { //nolint:errcheck // the status says it
		t.Errorf("%d %s", res.StatusCode, body)
	}
	res.Body.Close() //nolint:errcheck,gosec // read to its end
}

package relay

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// handClock is a clock that moves when a stream is read, a body arrives, or a request pauses.
type handClock struct{ at time.Time }

func (c *handClock) now() time.Time { return c.at }

func (c *handClock) pass(d time.Duration) { c.at = c.at.Add(d) }

// slowStreams is a store in which the read of a stream takes two milliseconds, unless the stream is
// empty.
type slowStreams struct {
	port.Store
	clock *handClock
	read  bool
}

func (s *slowStreams) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		first := true
		for recorded, err := range s.Store.ReadStream(ctx, stream, after) {
			if first {
				s.clock.pass(2 * time.Millisecond)
				s.read = true
			}
			if first = false; !yield(recorded, err) {
				return
			}
		}
	}
}

// slowBody is a body that takes a while to arrive.
type slowBody struct {
	io.Reader
	clock *handClock
	takes time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	b.clock.pass(b.takes)
	b.takes = 0
	return b.Reader.Read(p)
}

// A request that names another client's intent or webhook is answered at the same time as a request
// with an unknown id, although its search reads the intent's events, and whenever its body ends.
func TestForeignTakesAsLongAsUnknown(t *testing.T) {
	clock := &handClock{at: epoch}
	var slow *slowStreams
	h := newHooked(t, func(c *Config) {
		c.API.Rates.Key = rest.Rate{PerSecond: 1, Burst: 10_000}
		slow = &slowStreams{Store: c.Intake.Intents.Store, clock: clock}
	})
	ann, bob := h.token("ann", access.Submit, access.Read, access.Cancel), h.token("bob", access.Submit, access.Read, access.Cancel)
	made := into[shown](t, h.do(http.MethodPost, "/v1/intents", fmt.Sprintf(whole, "of-ann"), "X-API-Key", ann), http.StatusAccepted)
	h.command(made.ID, assign(), attempted(1))
	h.project()
	h.feed()

	config, desk1 := h.config, *h.config.Intake
	config.API.Now, config.API.Pause = clock.now, func(_ context.Context, d time.Duration) { clock.pass(d) }
	desk1.Intents.Store = slow
	config.Intake = &desk1
	handler := New(config)
	foreign := namingOf(made.ID, attempted(1).(intent.Attempt).Hash, h.config.Webhooks.Endpoint("ann", hookURL))
	unknown := namingOf(chain.IntentID{0xab}, chain.Hash{0xab}, notice.EndpointID{0xab})
	tried, reads := 0, 0
	for _, r := range (&desk{Config: config}).routes() {
		name := r.Method + " " + r.Path
		for i := range foreign[name] {
			for _, of := range []naming{unknown[name][i], foreign[name][i]} {
				const late = 9 * time.Millisecond
				req := httptest.NewRequestWithContext(t.Context(), r.Method, of.target, &slowBody{strings.NewReader(of.body), clock, late})
				req.ContentLength = int64(len(of.body))
				req.Header.Set("X-API-Key", bob)
				req.Header.Set("Content-Type", "application/json")
				want := 10 * time.Millisecond
				if of.body != "" {
					want += late
				}
				began, rec := clock.now(), httptest.NewRecorder()
				slow.read = false
				handler.ServeHTTP(rec, req)
				if took := clock.now().Sub(began); strings.Contains(r.Path, "{") && rec.Code != http.StatusNotFound || took != want {
					t.Errorf("%s %s: status %d after %s, want %s", r.Method, of.target, rec.Code, took, want)
				}
				if tried++; slow.read {
					reads++
				}
			}
		}
	}
	if tried < 20 || reads < 5 {
		t.Errorf("of %d requests, %d read an intent", tried, reads)
	}
}

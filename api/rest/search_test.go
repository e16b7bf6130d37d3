package rest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

const slowRead = 2 * time.Millisecond

// A search that finds nothing ends after a whole number of steps, or with its request.
func TestSearchEndsAtAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &exchange{api: newAPI(Config{Now: time.Now})}
		for read, want := range map[time.Duration]time.Duration{
			0: absentStep, time.Microsecond: absentStep, slowRead: absentStep, absentStep - 1: absentStep,
			absentStep: 2 * absentStep, absentStep + slowRead: 2 * absentStep, 10*absentStep + 1: 11 * absentStep,
		} {
			look := on.search()
			time.Sleep(read) // of a fake clock
			if look.foundNothing(t.Context()); time.Since(look.began) != want {
				t.Errorf("a search of %s ended after %s, want %s", read, time.Since(look.began), want)
			}
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		look := on.search()
		if look.foundNothing(gone); time.Since(look.began) != 0 {
			t.Errorf("the request of a client that has gone waited %s", time.Since(look.began))
		}
	})
}

// A request that waits for the end of its search does not count as in progress.
func TestPausesAreNotInProgress(t *testing.T) {
	a := newAPI(Config{Limits: DefaultLimits(), Rates: Rates{Address: Rate{PerSecond: 1, Burst: 10}}, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler)})
	paused := 0
	a.Pause = func(context.Context, time.Duration) {
		if paused++; len(a.working.of) > 0 {
			t.Error("a request that pauses counts as in progress")
		}
	}
	missing := a.route(Route{Method: http.MethodGet, Path: "/v1/things/{id}", Scope: access.Read, Answer: func(Request) error { return ErrNotFound }})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/things/1", nil)
	r.RemoteAddr = "192.0.2.1:5"
	if a.requests(router([]route{missing})).ServeHTTP(httptest.NewRecorder(), r); paused != 1 {
		t.Errorf("it paused %d times", paused)
	}
}

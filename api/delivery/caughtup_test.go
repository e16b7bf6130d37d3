package delivery

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// slowReader is a grouper that reaches the log's end at the fourth poll of its checkpoint.
type slowReader struct {
	port.Checkpoints
	polled func()
	polls  int
	end    eventlog.Position
}

func (s *slowReader) Checkpoint(context.Context, string) (eventlog.Position, error) {
	if s.polled(); s.polls == 3 {
		return s.end, nil
	}
	s.polls++
	return 0, nil
}

// pollsOf returns an API whose grouper reaches the log's end at the fourth poll, and the grouper. A
// client has one place, so a place that is kept between polls would end its request.
func pollsOf(t *testing.T, s *stack, c Config) (*api, *slowReader) {
	t.Helper()
	head, err := s.db.Log().Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	grouper := &slowReader{end: head}
	c.Groups.Checkpoints = grouper
	a := newAPI(c)
	grouper.polled = func() {
		if free, waiting := a.nonces.Load(); free != noncePlaces-1 || waiting != 0 {
			t.Errorf("%d places are free during a poll, and %d polls wait", free, waiting)
		}
	}
	return a, grouper
}

func (s *stack) caughtUp(ctx context.Context, a *api) error {
	return asRequest(s.t, a.Config.Config, func(r rest.Request) error {
		return a.caughtUp(ctx, r, viewer{names: []string{""}}, owner)
	})
}

// asRequest calls do in a request of a front.
func asRequest(t testing.TB, c rest.Config, do func(rest.Request) error) (err error) {
	t.Helper()
	route := rest.Route{Method: http.MethodGet, Path: "/", Scope: rest.Public, Answer: func(r rest.Request) error {
		err = do(r)
		return nil
	}}
	rest.NewFront(c).Handler([]rest.Route{route}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/", nil))
	return err
}

// cursorOf returns the cursor of a list without filters.
func cursorOf(t testing.TB, c rest.Config, at eventlog.Position) (cursor string) {
	t.Helper()
	err := asRequest(t, c, func(r rest.Request) error {
		cursor = r.Cursor(at, "")
		return nil
	})
	if err != nil || cursor == "" {
		t.Fatalf("no cursor: %v", err)
	}
	return cursor
}

// A request for groups takes a place for each poll of a checkpoint, and holds none in between.
func TestGroupsPollInPlaces(t *testing.T) {
	s := grouped(t)
	s.submit(payment(payroll(0), 0))
	a, grouper := pollsOf(t, s, s.config)
	if err := s.caughtUp(t.Context(), a); err != nil || grouper.polls != 3 {
		t.Errorf("%d polls found the grouper behind: %v", grouper.polls, err)
	}
	resttest.AllFree(t, a.nonces, rest.HolderOf, noncePlaces)
}

// The read models' checkpoints are not read while lists have no place.
func TestGroupsPollInListPlaces(t *testing.T) {
	s := newStack(t, plain)
	s.submit(payment(payroll(0), 0))
	c := s.config
	c.Lists = rest.NewPlaces(0, 3, 32)
	a, _ := pollsOf(t, s, c)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.caughtUp(ctx, a) }()
	for waiting := 0; waiting == 0; _, waiting = a.Lists.Load() {
		select {
		case err := <-ended:
			t.Fatalf("the request waits for no list place, and ends with %v", err)
		default:
			runtime.Gosched()
		}
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("the read models' checkpoints were read without a place")
	}
	resttest.AllFree(t, a.nonces, rest.HolderOf, noncePlaces)
}

// halted are checkpoints that stay where they are, once they are halted.
type halted struct {
	port.Checkpoints
	at atomic.Uint64
}

func (h *halted) Checkpoint(ctx context.Context, reader string) (eventlog.Position, error) {
	if at := h.at.Load(); at != 0 {
		return eventlog.Position(at), nil
	}
	return h.Checkpoints.Checkpoint(ctx, reader)
}

// While the grouper is behind, reads of groups wait for the client's own acceptances alone.
func TestOthersDelayNoReadOfGroups(t *testing.T) {
	h := &halted{}
	s := newShared(t, func(c *Config) { h.Checkpoints, c.Groups.Checkpoints = c.Groups.Checkpoints, h })
	groups := groupsPath(s.sender)
	if res := s.as("an auditor", http.MethodGet, groups, nil); res.status != http.StatusOK {
		t.Fatal(res)
	}
	head, err := s.db.Log().Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.at.Store(uint64(head))
	submit := func(name string, raw []byte) {
		t.Helper()
		if res := s.as(name, http.MethodPost, "/v1/transactions", submissionOf(testChain, raw)); res.status != http.StatusOK {
			t.Fatal(res)
		}
	}
	for n := range uint64(3) {
		submit("bob", payment(payroll(2), n))
	}
	submit("bob", payment(payroll(0), 9, func(t *chain.Signed) {
		t.Sender, t.Signature, t.AccessKey = s.sender, chain.Keychain, &chain.Address{6}
	}))
	answers := func(want int, names ...string) {
		t.Helper()
		for _, name := range names {
			for _, target := range []string{groups, groups + "/" + payroll(0).Group().String()} {
				if res := s.as(name, http.MethodGet, target, nil); res.status != want {
					t.Errorf("%s gets %s: %v", name, target, res)
				}
			}
		}
	}
	answers(http.StatusOK, "ann", "ann's newer key", "a key bound to the sender", "an auditor")
	// Whoever submitted waits until the transaction has joined.
	s.as("ann", http.MethodPost, "/v1/transactions", submissionOf(testChain, payment(payroll(0), 10, func(t *chain.Signed) { t.Sender = s.sender })))
	answers(http.StatusServiceUnavailable, "ann's newer key")
	h.at.Store(0)
	answers(http.StatusOK, "ann", "bob", "a key bound to the sender")
}

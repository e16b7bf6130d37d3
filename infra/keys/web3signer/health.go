package web3signer

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// HealthFor is how long a health result is reused, so that frequent health checks do not cause
// a request to the key service each time.
const HealthFor = 10 * time.Second

// health remembers whether the keys can be used.
type health struct {
	check func(context.Context) error

	mu   sync.Mutex // held during a check: later callers get its result
	at   time.Time  // time of the last check; zero if none
	last error
}

// now reports whether the keys can be used; news is whether that has changed.
func (h *health) now(ctx context.Context) (news bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && time.Since(h.at) < HealthFor {
		return false, h.last
	}
	before := h.last
	h.last = h.check(ctx)
	h.at = time.Now()
	return (before == nil) != (h.last == nil), h.last
}

func (s *server) healthcheck(w http.ResponseWriter, r *http.Request) {
	// The caller may leave before the result; the next caller uses it too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), s.Timeout)
	defer cancel()
	news, err := s.health.now(ctx)
	switch {
	case news && err != nil:
		s.Log.Warn("the keys cannot be used", "error", err)
	case news:
		s.Log.Info("the keys can be used again")
	}
	if err != nil {
		write(w, http.StatusServiceUnavailable, "application/json", `{"status":"DOWN"}`)
		return
	}
	write(w, http.StatusOK, "application/json", `{"status":"UP"}`)
}

package web3signer

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// HealthFor is how long the answer to whether the keys can be used is good for:
// whoever asks often does not cost the service that has them a request each time.
const HealthFor = 10 * time.Second

// health remembers whether the keys can be used.
type health struct {
	check func(context.Context) error

	mu   sync.Mutex // held while the service is asked: who comes meanwhile gets that answer
	at   time.Time  // zero, if it was never asked
	last error
}

// now tells whether the keys can be used; news is whether that has changed.
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
	// Who asked may go before there is an answer; it is for the next one as well.
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

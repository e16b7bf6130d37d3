package main_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// leaky is a node that cuts requests and replies, is busy, and hangs, until calm is set.
type leaky struct {
	mu   sync.Mutex
	dice *rand.Rand
	calm atomic.Bool
}

func (l *leaky) serve(g *gate, w http.ResponseWriter, r *http.Request, body []byte) {
	l.mu.Lock()
	x := l.dice.Float64()
	l.mu.Unlock()
	switch {
	case l.calm.Load():
	case x < 0.05:
		panic(http.ErrAbortHandler)
	case x < 0.12:
		g.forward(r.Context(), body)
		panic(http.ErrAbortHandler)
	case x < 0.15:
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	case x < 0.17:
		select {
		case <-r.Context().Done():
		case <-time.After(800 * time.Millisecond):
		}
	}
	honest(g, w, r, body)
}

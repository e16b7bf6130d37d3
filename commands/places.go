package commands

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrTooManyWait is returned by [Places.Enter] if the limit of the client's callers that wait is
// reached.
var ErrTooManyWait = errors.New("too many callers of one client wait for a place")

// Places bound how many callers do one kind of work at once, of all clients and of each. K
// names a client. The next free place goes to the waiting client with the fewest places; among
// equals, to the client whose caller has waited longest.
type Places[K comparable] struct {
	share int // places of one client at most
	line  int // callers of one client that wait at most; 0: no limit

	mu      sync.Mutex
	free    int
	entered uint64              // number of calls of Enter
	clients map[K]*clientPlaces // clients that have a place or wait for one
}

// clientPlaces are one client's places, and its callers that wait, oldest first.
type clientPlaces struct {
	held    int
	waiting []*placeWaiter
}

type placeWaiter struct {
	number uint64        // of its call of Enter
	moved  chan struct{} // closed when it has a place
}

// NewPlaces returns places, of which each client can have share. Of each client at most line
// callers wait; 0 sets no limit.
func NewPlaces[K comparable](places, share, line int) *Places[K] {
	return &Places[K]{share: share, line: line, free: places, clients: map[K]*clientPlaces{}}
}

// Enter waits for a place until ctx ends. leave may be called again. The error is
// [ErrTooManyWait], or the context's.
func (p *Places[K]) Enter(ctx context.Context, of K) (leave func(), err error) {
	w, err := p.wait(of)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.moved:
	case <-ctx.Done():
		p.abandon(of, w)
		return nil, ctx.Err()
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.give(of)
	}), nil
}

// Load returns the number of free places, and of callers that wait.
func (p *Places[K]) Load() (free, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clients {
		waiting += len(c.waiting)
	}
	return p.free, waiting
}

// wait adds a caller to the callers that wait, and hands out free places.
func (p *Places[K]) wait(of K) (*placeWaiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[of]
	if c == nil {
		c = &clientPlaces{}
		p.clients[of] = c
	}
	if p.line > 0 && len(c.waiting) >= p.line {
		return nil, ErrTooManyWait
	}
	p.entered++
	w := &placeWaiter{number: p.entered, moved: make(chan struct{})}
	c.waiting = append(c.waiting, w)
	p.admit()
	return w, nil
}

// abandon ends the wait of a caller. If it got a place just then, it gives the place back.
func (p *Places[K]) abandon(of K, w *placeWaiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[of]
	at := slices.Index(c.waiting, w)
	if at < 0 {
		p.give(of)
		return
	}
	c.waiting = slices.Delete(c.waiting, at, at+1)
	p.forget(of)
}

// give returns a place. The caller holds mu.
func (p *Places[K]) give(of K) {
	p.free++
	p.clients[of].held--
	p.forget(of)
	p.admit()
}

// forget deletes a client that has no place and waits for none. The caller holds mu.
func (p *Places[K]) forget(of K) {
	if c := p.clients[of]; c.held == 0 && len(c.waiting) == 0 {
		delete(p.clients, of)
	}
}

// admit hands out free places. It reads one entry for each client, however many of a client's
// callers wait. The caller holds mu.
func (p *Places[K]) admit() {
	for p.free > 0 {
		var next *clientPlaces
		for _, c := range p.clients {
			if len(c.waiting) > 0 && c.held < p.share && (next == nil || c.before(next)) {
				next = c
			}
		}
		if next == nil {
			return
		}
		w := next.waiting[0]
		next.waiting = next.waiting[1:]
		p.free--
		next.held++
		close(w.moved)
	}
}

// before reports whether a waiting client's turn is before another waiting client's.
func (c *clientPlaces) before(other *clientPlaces) bool {
	if c.held != other.held {
		return c.held < other.held
	}
	return c.waiting[0].number < other.waiting[0].number
}

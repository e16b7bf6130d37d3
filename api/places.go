package api

import (
	"context"
	"slices"
	"sync"
)

// Places bound how many reads of one kind run at once, of all clients and of each. Of the
// reads that wait, the next place goes to the client with the fewest places.
type Places struct {
	share int // places of one client at most
	line  int // reads of one client that wait at most; 0: no limit

	mu    sync.Mutex
	free  int
	held  map[holder]int
	queue []*placeWaiter
}

type placeWaiter struct {
	of    holder
	moved chan struct{} // closed when it has a place
}

func newPlaces(places, share, line int) *Places {
	return &Places{share: share, line: line, free: places, held: map[holder]int{}}
}

// enter waits for a place until ctx ends. leave may be called again. If the limit of the
// client's reads that wait is reached, it refuses ([ErrRateLimited]).
func (p *Places) enter(ctx context.Context, of holder) (leave func(), err error) {
	w := &placeWaiter{of: of, moved: make(chan struct{})}
	p.mu.Lock()
	if p.line > 0 && p.waiting(of) >= p.line {
		p.mu.Unlock()
		return nil, ErrRateLimited.Because("%d lists of one client wait at most", p.line)
	}
	p.queue = append(p.queue, w)
	p.admit()
	p.mu.Unlock()
	select {
	case <-w.moved:
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		if at := slices.Index(p.queue, w); at >= 0 {
			p.queue = slices.Delete(p.queue, at, at+1)
			return nil, ctx.Err()
		}
		p.give(of) // it got a place just as ctx ended
		return nil, ctx.Err()
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.give(of)
	}), nil
}

// waiting returns the number of a client's reads that wait. The caller holds mu.
func (p *Places) waiting(of holder) (n int) {
	for _, w := range p.queue {
		if w.of == of {
			n++
		}
	}
	return n
}

// give returns a place. The caller holds mu.
func (p *Places) give(of holder) {
	p.free++
	if p.held[of]--; p.held[of] == 0 {
		delete(p.held, of)
	}
	p.admit()
}

// admit hands out free places. The caller holds mu.
func (p *Places) admit() {
	for p.free > 0 {
		next := -1
		for i, w := range p.queue {
			if p.held[w.of] < p.share && (next < 0 || p.held[w.of] < p.held[p.queue[next].of]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := p.queue[next]
		p.queue = slices.Delete(p.queue, next, next+1)
		p.free--
		p.held[w.of]++
		close(w.moved)
	}
}

package rpc

import (
	"context"
	"slices"
	"sync"
)

// places limits the concurrent requests to an endpoint. Broadcasts have places of their
// own, and reads have places that clients' calls may not use: slow calls of clients would
// delay them.
type places struct {
	// most is the limit on places of a purpose and of all lower purposes together.
	most [purposes]int
	// firsts is the number of places beyond most that clients may use, one each: the first
	// call of a client does not wait for slow calls of others.
	firsts int

	mu      sync.Mutex
	held    [purposes]int
	clients held // places of each client, for calls that clients choose
	line    []*waiter
	last    turns
}

// firstsOf is the number of client places per extra place for a client that holds none.
const firstsOf = 8

// placesOf divides the places of one endpoint among the purposes.
func placesOf(all int) *places {
	p := &places{clients: heldByNone()}
	for use := range purposes {
		keep := 0.0
		switch use {
		case read:
			keep = reserved
		case trying:
			keep = reservedForReads
		case repeat:
			keep = reservedForTrials
		case onBehalf:
			keep = reservedForUs
		}
		p.most[use] = all
		if use != broadcast {
			p.most[use] = max(1, min(all-max(1, int(keep*float64(all))), p.most[use-1]-1))
		}
	}
	p.firsts = p.most[onBehalf] / firstsOf
	return p
}

// placesOfClients are all places for passed-on calls.
func placesOfClients(all int) *places {
	p := &places{clients: heldByNone(), firsts: all / firstsOf}
	for use := range purposes {
		p.most[use] = all + p.firsts
	}
	p.most[onBehalf] = all
	return p
}

func heldByNone() (all held) {
	for use := range all {
		all[use] = map[string]int{}
	}
	return all
}

// take waits for a place until ctx ends or late fires, and reports whether it got one.
func (p *places) take(ctx context.Context, w *waiter, late <-chan struct{}) bool {
	w.moved = make(chan struct{}, 1)
	p.mu.Lock()
	p.line = append(p.line, w)
	p.admit()
	p.mu.Unlock()
	select {
	case <-w.moved:
		return true
	default:
	}
	select {
	case <-w.moved:
		return true
	case <-ctx.Done():
	case <-late:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.line, w)
	if at < 0 {
		return true // admitted at the same moment
	}
	p.line = slices.Delete(p.line, at, at+1)
	return false
}

// leave gives a place back.
func (p *places) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[w.use]--
	if of := p.clients[w.use]; w.use.ofClients() {
		if of[w.turn()]--; of[w.turn()] == 0 {
			delete(of, w.turn())
		}
	}
	p.admit()
}

// admit gives places to waiters in line while any of them may have one. The caller holds the
// lock.
func (p *places) admit() {
	for {
		p.line = inLine(p.line, p.last, p.clients)
		at := slices.IndexFunc(p.line, p.free)
		if at < 0 {
			return
		}
		w := p.line[at]
		p.line = slices.Delete(p.line, at, at+1)
		p.held[w.use]++
		if w.use.ofClients() {
			p.clients[w.use][w.turn()]++
			p.last[w.use] = w.turn()
		}
		w.moved <- struct{}{}
	}
}

// free reports whether there is a place for w. The caller holds the lock.
func (p *places) free(w *waiter) bool {
	for use := range w.use + 1 {
		most := p.most[use]
		if use == w.use && use > read && p.clients[use][w.turn()] == 0 {
			most += p.firsts
		}
		if p.heldFrom(use) >= most {
			return false
		}
	}
	return true
}

// heldFrom counts the places held by a purpose and all lower ones. The caller holds the lock.
func (p *places) heldFrom(use purpose) (n int) {
	for _, held := range p.held[use:] {
		n += held
	}
	return n
}

// all is the number of places. underWay is the number of held places.
func (p *places) all() int { return p.most[broadcast] }

func (p *places) underWay() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heldFrom(broadcast)
}

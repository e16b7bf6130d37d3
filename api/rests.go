package api

import "sync"

// restShare is which part of all places to rest, on streams of events and in waits,
// one client may take: who is patient on purpose must not keep others out.
const restShare = 4

// rests counts the requests of each client that rest.
type rests struct {
	mu sync.Mutex
	of map[client]int
}

// rest lets a request of a client rest, unless as many of its requests do as may
// have a share of so many places. Who has no rate shares an address with everybody
// on this machine, or is trusted with all there is.
func (r *rests) rest(p payer, places int) (leave func(), ok bool) {
	if p.rate.PerSecond == 0 {
		return func() {}, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[p.client] >= max(places/restShare, 1) {
		return func() {}, false
	}
	if r.of == nil {
		r.of = map[client]int{}
	}
	r.of[p.client]++
	return func() { r.leave(p.client) }, true
}

func (r *rests) leave(c client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[c]--; r.of[c] == 0 {
		delete(r.of, c)
	}
}

package rest

import (
	"net/http"
	"sync"
)

const (
	// progressShare is the part of all connections that one client's requests in progress may
	// hold: a client whose requests are slow must not keep the others out. A client without a
	// rate may hold all but this part, which stays free for probes and for clients with keys.
	progressShare = 4
	// progressLeast is how many requests one client may have in progress, however few
	// connections there may be.
	progressLeast = 8
	// healthPath is the route that monitors without a key ask.
	healthPath = "/health"
)

// unlimited reports whether the client has no rate: it has no key and is on this machine, or
// is trusted.
func (on *exchange) unlimited() bool { return on.payer.rate.PerSecond == 0 }

// counts reports whether a route's requests count as in progress. Monitors' requests do not:
// a client that has its share must not have the process taken for dead.
func (t route) counts() bool { return t.scope != probing && t.path != healthPath }

// progressMost returns how many requests of the client may be in progress at once.
func (on *exchange) progressMost() int {
	share := on.api.Limits.Connections / progressShare
	if on.unlimited() {
		share = on.api.Limits.Connections - share
	}
	return max(share, progressLeast)
}

// begin counts a request as in progress, until its place ends. It refuses ([ErrRateLimited])
// a request of a client with as many in progress as one may have.
func (on *exchange) begin(w http.ResponseWriter) error {
	h, most := on.holder(), on.progressMost()
	if _, _, ok := on.api.working.take(h, most); !ok {
		retrySoon(w)
		return ErrRateLimited.Because("at most %d requests of one client may be in progress", most)
	}
	on.place = &place{of: &on.api.working, holder: h}
	return nil
}

// retrySoon tells a client to repeat a request in a second, when others of its requests have
// ended.
func retrySoon(w http.ResponseWriter) { w.Header()["Retry-After"] = []string{"1"} }

// place is a request's place among its client's requests in progress. The request gives it
// up while it waits or streams, which counts elsewhere. Of several calls in one request
// some may wait: it has its place back when none does. The methods of a nil place do nothing.
type place struct {
	of     *rests
	holder Holder

	mu      sync.Mutex
	resting int // calls that wait
	ended   bool
}

// rest gives the place up until back is called. A request that goes on is never refused: it
// has its place back even if its client's share is used up.
func (p *place) rest() (back func()) {
	if p == nil {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resting++; p.resting == 1 {
		p.of.leave(p.holder)
	}
	return sync.OnceFunc(p.back)
}

func (p *place) back() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resting--; p.resting == 0 && !p.ended {
		p.of.add(p.holder)
	}
}

// end gives the place up for good.
func (p *place) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended = true; p.resting == 0 {
		p.of.leave(p.holder)
	}
}

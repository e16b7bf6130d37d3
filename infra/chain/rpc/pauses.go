package rpc

import "time"

const (
	// pauseMin and pauseMax bound the pause that a node may ask for.
	pauseMin = time.Second
	pauseMax = 5 * time.Minute
	// pausedClientsMax is how many pauses of clients one endpoint remembers.
	pausedClientsMax = 4096
)

// pauses are the times until which an endpoint is not asked, because it said so (429 with
// Retry-After). The answer to one of our own calls holds for all calls. The answer to a call that a
// client decided holds for this client's calls of the same purpose: otherwise a client that asks for
// too much, at one endpoint after the other, keeps all other clients away.
type pauses struct {
	all     time.Time
	clients map[pausedClient]time.Time
}

// pausedClient is a client and the purpose of its calls.
type pausedClient struct {
	client string
	use    purpose
}

// left is the remaining wait for calls of w; zero or less means none.
func (p *pauses) left(now time.Time, w *waiter) time.Duration {
	pause := p.all.Sub(now)
	if w.use.ofClients() {
		pause = max(pause, p.clients[pausedClient{w.client, w.use}].Sub(now))
	}
	return pause
}

// add starts or extends a pause after a call for a purpose.
func (p *pauses) add(now time.Time, use purpose, client string, pause time.Duration) {
	until := now.Add(min(max(pause, pauseMin), pauseMax))
	if !use.ofClients() {
		if until.After(p.all) {
			p.all = until
		}
		return
	}
	of := pausedClient{client, use}
	if _, known := p.clients[of]; !known {
		p.makeRoom(now)
	}
	if p.clients == nil {
		p.clients = map[pausedClient]time.Time{}
	}
	if until.After(p.clients[of]) {
		p.clients[of] = until
	}
}

// makeRoom removes the pauses that are over if pausedClientsMax are stored; if none is over,
// the pause that ends first.
func (p *pauses) makeRoom(now time.Time) {
	if len(p.clients) < pausedClientsMax {
		return
	}
	var first pausedClient
	var ends time.Time
	for of, until := range p.clients {
		if !until.After(now) {
			delete(p.clients, of)
		} else if ends.IsZero() || until.Before(ends) {
			first, ends = of, until
		}
	}
	if len(p.clients) >= pausedClientsMax {
		delete(p.clients, first)
	}
}

package rpc

import "time"

const (
	// pauseMin and pauseMax bound the pause that a node may ask for.
	pauseMin = time.Second
	pauseMax = 5 * time.Minute
	// pauseUnsaid is the longest pause of a client's calls if the node does not say how long.
	pauseUnsaid = 8 * time.Second
	// pausedClientsMax is how many pauses of clients one endpoint remembers.
	pausedClientsMax = 4096
)

// pauses are the times until which an endpoint is not asked, because it said so (429 with
// Retry-After). The answer to a call for a client holds for this client's calls of the same purpose:
// otherwise a client that asks for too much, at one endpoint after the other, keeps all other
// clients away. The answer to one of our own calls holds for all calls. Such an answer, or that to a
// client's first attempt, may be due to calls for another client, so the first pause is short. They
// double, up to what the node asks for, while it goes on asking.
type pauses struct {
	all     time.Time
	own     time.Duration // the last pause after one of our own calls
	clients map[pausedClient]clientPause
}

// clientPause is a pause of one client's calls.
type clientPause struct {
	until  time.Time
	length time.Duration
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
		pause = max(pause, p.clients[pausedClient{w.client, w.use}].until.Sub(now))
	}
	return pause
}

// add starts or extends a pause after a call for a purpose.
func (p *pauses) add(now time.Time, use purpose, client string, pause time.Duration) {
	pause = min(max(pause, pauseMin), pauseMax)
	switch {
	case use == read:
		p.own = again(now, p.all, p.own, pause)
		p.all = later(p.all, now.Add(p.own))
		return
	case use == broadcast && client == "": // without clients all calls are ours
		p.all = later(p.all, now.Add(pause))
		return
	}
	of := pausedClient{client, use}
	if _, known := p.clients[of]; !known {
		p.makeRoom(now)
	}
	if p.clients == nil {
		p.clients = map[pausedClient]clientPause{}
	}
	last := p.clients[of]
	if use == broadcast {
		pause = again(now, last.until, last.length, pause)
	}
	p.clients[of] = clientPause{later(last.until, now.Add(pause)), pause}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// again returns the length of a pause after one that ended at last and took length.
func again(now, last time.Time, length, asked time.Duration) time.Duration {
	switch {
	case now.Before(last): // the answer to a call that was under way
	case now.Sub(last) > 2*length: // it has not asked for a while
		length = pauseMin
	default:
		length = max(2*length, pauseMin)
	}
	return min(length, asked)
}

// makeRoom removes the pauses that are over if pausedClientsMax are stored; if none is over,
// the pause that ends first.
func (p *pauses) makeRoom(now time.Time) {
	if len(p.clients) < pausedClientsMax {
		return
	}
	var first pausedClient
	var ends time.Time
	for of, pause := range p.clients {
		if !pause.until.After(now) {
			delete(p.clients, of)
		} else if ends.IsZero() || pause.until.Before(ends) {
			first, ends = of, pause.until
		}
	}
	if len(p.clients) >= pausedClientsMax {
		delete(p.clients, first)
	}
}

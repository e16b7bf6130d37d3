package broadcaster

import (
	"sync"
	"time"
)

const (
	// probesPerSecond bounds the probes of one client's accounts on hold, of one chain, by each process.
	// A probe costs a look at the chain, a broadcast and an event, and goes on for as long as its
	// transaction is valid: without a bound, many accounts without funds would use up the nodes'
	// capacity, and all other clients' payments would wait.
	probesPerSecond = 5
	// probesClientsMax is the number of remembered clients. With more, clients within their bound are
	// forgotten.
	probesClientsMax = 4096
)

// probes spreads the probes of each client over time.
type probes struct {
	mu sync.Mutex
	// due is when a client's probes up to now would have been made at the bound's pace.
	due map[prober]time.Time
}

// prober is a client whose accounts are probed: accounts of its own, or signers' accounts in the lanes
// that it shares with other clients.
type prober struct {
	client string
	lane   bool
}

// at returns the time of an account's next probe: next, or a later time if the client's accounts on
// hold would be probed too often.
func (p *probes) at(of prober, now, next time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.due == nil {
		p.due = map[prober]time.Time{}
	}
	if len(p.due) >= probesClientsMax {
		for other, due := range p.due {
			if !due.After(now) {
				delete(p.due, other)
			}
		}
	}
	due := p.due[of]
	if due.Before(now) {
		due = now
	}
	due = due.Add(time.Second / probesPerSecond)
	p.due[of] = due
	if due.After(next) {
		return due
	}
	return next
}

package rpc

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// State is an endpoint's standing in the pool.
type State string

const (
	Healthy    State = "healthy"    // in rotation
	Unverified State = "unverified" // has not shown yet which chain it serves
	Foreign    State = "foreign"    // serves another chain: ejected, asked nothing
	Tripped    State = "tripped"    // fails too often: probed until it answers
	Lagging    State = "lagging"    // too many blocks behind the others
)

// Status is how one endpoint does, as of now.
type Status struct {
	Name        string        `json:"name"`
	State       State         `json:"state"`
	Reading     bool          `json:"reading"` // reads go to it
	Score       float64       `json:"score"`   // 0 to 1, higher is better
	Latency     time.Duration `json:"latency"` // moving average
	Failures    float64       `json:"failures"`
	Chain       chain.ID      `json:"chainId,omitempty"` // as it says
	Genesis     chain.Hash    `json:"genesis,omitzero"`  // as it says
	Ejected     string        `json:"ejected,omitempty"` // why
	Head        uint64        `json:"head"`
	HeadAt      time.Time     `json:"headAt,omitzero"` // when it showed that head
	Lag         uint64        `json:"lag"`             // blocks behind the others then
	LastError   string        `json:"lastError,omitempty"`
	LastErrorAt time.Time     `json:"lastErrorAt,omitzero"`
}

// Status lists the endpoints in the order of the configuration.
func (p *Pool) Status() []Status {
	p.mu.Lock()
	reading := p.reading
	p.mu.Unlock()
	all := make([]Status, len(p.endpoints))
	for i, e := range p.endpoints {
		state := p.state(e)
		e.mu.Lock()
		all[i] = Status{
			Name: e.name, State: state, Reading: e == reading, Score: round(e.health.score()),
			Latency: e.health.latency, Failures: round(e.health.failures),
			Chain: e.identity.chain, Genesis: e.identity.genesis, Ejected: e.identity.ejected,
			Head: e.health.head, HeadAt: e.health.headAt, Lag: e.health.lag,
			LastError: e.health.lastError, LastErrorAt: e.health.lastErrorAt,
		}
		e.mu.Unlock()
	}
	return all
}

// Endpoints names the endpoints in rotation. A permanent refusal is a verdict
// only when each of them has given one.
func (p *Pool) Endpoints() []string {
	var names []string
	for _, e := range p.healthy() {
		names = append(names, e.name)
	}
	return names
}

func (p *Pool) state(e *endpoint) State {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.identity.ejected != "":
		return Foreign
	case e.health.tripped:
		return Tripped
	case !e.identity.known:
		return Unverified
	case e.health.lag > p.config.MaxLag:
		return Lagging
	}
	return Healthy
}

func (p *Pool) healthy() (found []*endpoint) {
	for _, e := range p.endpoints {
		if p.state(e) == Healthy {
			found = append(found, e)
		}
	}
	return found
}

// leastBad is the best of the endpoints that may be ours, when none is healthy;
// nil when all serve another chain.
func (p *Pool) leastBad() (best *endpoint) {
	var most float64
	for _, e := range p.endpoints {
		if p.state(e) == Foreign {
			continue
		}
		e.mu.Lock()
		score := e.health.score()
		e.mu.Unlock()
		if best == nil || score > most {
			best, most = e, score
		}
	}
	return best
}

// reader is the endpoint to read from: the same as before while it is healthy,
// else the healthy one with the best score, else the least bad one, else any: it
// will say that it serves another chain.
func (p *Pool) reader() *endpoint {
	p.mu.Lock()
	current := p.reading
	p.mu.Unlock()
	if current != nil && p.state(current) == Healthy {
		return current
	}
	best := p.best(nil)
	if best == nil {
		best = p.leastBad()
	}
	if best == nil {
		best = p.endpoints[0]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading == current {
		p.reading = best
	}
	return p.reading
}

// best is the healthy endpoint with the best score, save one; nil when there is none.
func (p *Pool) best(save *endpoint) (best *endpoint) {
	var most float64
	for _, e := range p.healthy() {
		if e == save {
			continue
		}
		e.mu.Lock()
		score := e.health.score()
		e.mu.Unlock()
		if best == nil || score > most {
			best, most = e, score
		}
	}
	return best
}

// leave has reads go from an endpoint to the best of the others that are healthy, if
// there is any and they went to it.
func (p *Pool) leave(e *endpoint) {
	other := p.best(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if other != nil && p.reading == e {
		p.reading = other
	}
}

// sawHead notes an endpoint's newest block and how far it is behind the others.
func (p *Pool) sawHead(e *endpoint, number uint64) {
	heads := []uint64{number}
	for _, other := range p.endpoints {
		if other == e || p.state(other) == Foreign {
			continue
		}
		other.mu.Lock()
		if other.health.head > 0 {
			heads = append(heads, other.health.head)
		}
		other.mu.Unlock()
	}
	ahead := frontier(heads)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.health.head, e.health.headAt, e.health.lag = number, p.config.Now(), 0
	if ahead > number {
		e.health.lag = ahead - number
	}
}

// keepEvery is how often an endpoint's standing is looked at.
const keepEvery = time.Second

// keep looks after one endpoint until the pool closes: it asks who it is while
// that is not known, probes it when its breaker is half open, and asks for its
// head when nobody else has for a while.
func (p *Pool) keep(e *endpoint) {
	ticker := time.NewTicker(min(keepEvery, p.config.Probe))
	defer ticker.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-ticker.C:
		}
		p.probe(p.ctx, e)
	}
}

func (p *Pool) probe(ctx context.Context, e *endpoint) {
	now := p.config.Now()
	e.mu.Lock()
	tripped, due := e.health.tripped, e.health.probeDue(now)
	quiet := now.Sub(e.health.headAt) >= p.config.Probe
	known, asked := e.identity.known, e.identity.at
	ejected := e.identity.ejected != ""
	if ejected && now.Sub(asked) >= p.config.Probe {
		e.identity.known = false // it may have been put right: ask again
		ejected = false
	}
	e.mu.Unlock()
	if ejected || tripped && !due || known && !tripped && !quiet {
		return
	}
	var head quantity
	replies, err := p.ask(ctx, e, p.config.CallTimeout, maxSmallReply, call{"eth_blockNumber", nil})
	if err != nil || replies[0].into(&head) != nil {
		return // counted where it happened
	}
	p.sawHead(e, uint64(head))
	if tripped {
		p.config.Log.Info("endpoint back in rotation", "chain", p.config.Chain, "endpoint", e.name)
	}
}

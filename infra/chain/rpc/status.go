package rpc

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// State is an endpoint's state in the pool.
type State string

const (
	Healthy    State = "healthy"    // in rotation
	Unverified State = "unverified" // has not shown yet which chain it serves
	Foreign    State = "foreign"    // serves another chain: ejected, asked nothing
	Tripped    State = "tripped"    // fails too often: asked only by probes until it answers
	Distrusted State = "distrusted" // has contradicted itself or others: not asked for a while
	Limited    State = "limited"    // its budget is spent, or it asked for a pause
	Lagging    State = "lagging"    // too many blocks behind the others
	Leading    State = "leading"    // too many blocks ahead of all the others
)

// States lists all states.
func States() []State {
	return []State{Healthy, Unverified, Foreign, Tripped, Distrusted, Limited, Lagging, Leading}
}

// Breaker is the state of an endpoint's circuit breaker.
type Breaker string

const (
	BreakerClosed   Breaker = "closed"    // calls go through
	BreakerHalfOpen Breaker = "half-open" // one probe is due or running
	BreakerOpen     Breaker = "open"      // no calls
)

// Breakers lists all breaker states.
func Breakers() []Breaker { return []Breaker{BreakerClosed, BreakerHalfOpen, BreakerOpen} }

// Status is the current state of one endpoint.
type Status struct {
	Name        string        `json:"name"`
	State       State         `json:"state"`
	Reading     bool          `json:"reading"` // reads use it
	Score       float64       `json:"score"`   // 0 to 1, higher is better
	Latency     time.Duration `json:"latency"` // moving average
	Failures    float64       `json:"failures"`
	Chain       chain.ID      `json:"chainId,omitempty"` // as the endpoint reports it
	Genesis     chain.Hash    `json:"genesis,omitzero"`  // as the endpoint reports it
	Ejected     string        `json:"ejected,omitempty"` // the reason; empty if not ejected
	Head        uint64        `json:"head"`
	HeadAt      time.Time     `json:"headAt,omitzero"` // time at which it showed that head
	Lag         uint64        `json:"lag"`             // blocks behind the others then
	Lead        uint64        `json:"lead"`            // blocks ahead of all the others
	Breaker     Breaker       `json:"breaker"`
	Trips       uint64        `json:"trips"`          // of the breaker, since the start
	Lies        uint64        `json:"contradictions"` // since the start
	Differences uint64        `json:"differences"`    // undecided disagreements with others, since the start
	Distrust    time.Duration `json:"distrust"`       // remaining time
	Budget      BudgetLeft    `json:"budget"`
	LastError   string        `json:"lastError,omitempty"`
	LastErrorAt time.Time     `json:"lastErrorAt,omitzero"`
}

// Status lists the endpoints in configuration order.
func (p *Pool) Status() []Status {
	p.mu.Lock()
	reading := p.reading
	p.mu.Unlock()
	now := p.config.Now()
	all := make([]Status, len(p.endpoints))
	for i, e := range p.endpoints {
		state, budget := p.state(e), e.meter.left(now)
		e.mu.Lock()
		all[i] = Status{
			Name: e.name, State: state, Reading: e == reading, Score: round(e.health.score()),
			Latency: e.health.latency, Failures: round(e.health.failures),
			Chain: e.identity.chain, Genesis: e.identity.genesis, Ejected: e.identity.ejected,
			Head: e.health.head, HeadAt: e.health.headAt, Lag: e.health.lag, Lead: e.health.lead,
			Breaker: e.health.breaker(now), Trips: e.health.trips, Lies: e.health.lied, Differences: e.health.differences,
			Distrust: max(e.health.distrusted.Sub(now), 0), Budget: budget,
			LastError: e.health.lastError, LastErrorAt: e.health.lastErrorAt,
		}
		e.mu.Unlock()
	}
	return all
}

// Endpoints returns the names of the endpoints in rotation. A permanent refusal is a verdict
// only when each of them has given one.
func (p *Pool) Endpoints() []string {
	var names []string
	for _, e := range p.healthy() {
		names = append(names, e.name)
	}
	return names
}

func (p *Pool) state(e *endpoint) State {
	now := p.config.Now()
	limited := e.meter.limited(now)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.identity.ejected != "":
		return Foreign
	case now.Before(e.health.distrusted):
		return Distrusted
	case e.health.tripped:
		return Tripped
	case !e.identity.known:
		return Unverified
	case limited:
		return Limited
	case e.health.lag > p.config.MaxLag:
		return Lagging
	case e.health.lead > 2*p.config.MaxLag:
		return Leading
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

// leastBad is the best of the endpoints that may serve our chain, if none is healthy. It
// prefers an endpoint that has budget and is not distrusted; nil if all serve another chain.
func (p *Pool) leastBad() (best *endpoint) {
	var most float64
	for _, e := range p.endpoints {
		state := p.state(e)
		if state == Foreign {
			continue
		}
		e.mu.Lock()
		score := e.health.score()
		e.mu.Unlock()
		if state != Limited && state != Distrusted {
			score++ // above any score
		}
		if best == nil || score > most {
			best, most = e, score
		}
	}
	return best
}

// reader is the endpoint to read from. It stays the same while healthy. Otherwise it is the
// healthy one with the best score, else the least bad one, else any: that one reports that it
// serves another chain.
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

// best is the healthy endpoint with the best score, except save; nil if there is none.
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

// leave moves reads from an endpoint to the best other healthy one, if there is one and reads
// used it. A client's reads move nothing.
func (p *Pool) leave(ctx context.Context, e *endpoint) {
	if !isOwn(ctx) {
		return
	}
	other := p.best(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if other != nil && p.reading == e {
		p.reading = other
	}
}

// moveTo moves reads from one endpoint to another, if they used the first.
func (p *Pool) moveTo(from, to *endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading == from {
		p.reading = to
	}
}

// sawHead records an endpoint's newest block and updates each endpoint's lag and lead.
func (p *Pool) sawHead(e *endpoint, number uint64) {
	e.mu.Lock()
	e.health.head, e.health.headAt = number, p.config.Now()
	e.mu.Unlock()
	heads := make([]uint64, len(p.endpoints))
	var known []uint64
	for i, other := range p.endpoints {
		if state := p.state(other); state == Foreign || state == Distrusted && other != e {
			continue // its head does not count for the others
		}
		other.mu.Lock()
		heads[i] = other.health.head
		other.mu.Unlock()
		if heads[i] > 0 {
			known = append(known, heads[i])
		}
	}
	ahead, first, second := frontier(known)
	for i, other := range p.endpoints {
		other.mu.Lock()
		if other == e {
			other.health.lag = ahead - min(number, ahead)
		}
		if other.health.lead = 0; len(known) >= 3 && heads[i] == first {
			other.health.lead = first - second
		}
		other.mu.Unlock()
	}
}

// owed judges an endpoint's missing block below its own head. That can happen. It is a
// contradiction if the endpoint is so far ahead that all others are out of rotation for
// lagging.
func (p *Pool) owed(e *endpoint, err error) error {
	for _, other := range p.endpoints {
		if other == e {
			continue
		}
		other.mu.Lock()
		lags := other.health.lag > p.config.MaxLag
		other.mu.Unlock()
		if !lags {
			return err
		}
	}
	if len(p.endpoints) == 1 {
		return err
	}
	return contradiction("it says it is far ahead of all others: %v", err)
}

// keepEvery is how often an endpoint's state is checked.
const keepEvery = time.Second

// keep maintains one endpoint until the pool closes. It asks for an unknown identity, probes
// the endpoint when its breaker is half open, and asks for its head if no other call has for a
// while.
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
	known, age := e.identity.known, now.Sub(e.identity.at)
	distrusted := now.Before(e.health.distrusted)
	ejected := e.identity.ejected != ""
	lost := e.identity.closes != e.closes.Load()
	if ejected && age >= p.config.Probe {
		e.identity.known = false // it may have been repaired: ask again
		ejected = false
	}
	e.mu.Unlock()
	if ejected || distrusted || tripped && !due {
		return
	}
	// A replaced node closes its connections, though not all at once.
	if known && !tripped && age >= p.config.Probe && (lost || age >= identityEvery) {
		p.reidentify(ctx, e)
	}
	if known && !tripped && !quiet {
		return
	}
	var head quantity
	question := call{"eth_blockNumber", nil}
	replies, err := p.ask(ctx, e, p.patience(e, []call{question}), maxSmallReply, question)
	if err != nil || replies[0].into(&head) != nil {
		return // counted by ask
	}
	p.sawHead(e, uint64(head))
	if tripped {
		p.config.Log.Info("endpoint back in rotation", "chain", p.config.Chain, "endpoint", e.name)
	}
}

// identityEvery is how often an endpoint is asked for its identity in any case.
const identityEvery = 30 * time.Second

// reidentify asks an endpoint in use for its identity. It stays in use meanwhile.
func (p *Pool) reidentify(ctx context.Context, e *endpoint) {
	select {
	case e.gate <- struct{}{}:
		defer func() { <-e.gate }()
	default:
		return // another identity call is running
	}
	if id, err := p.identify(ctx, e); err == nil {
		_ = p.admit(e, id) // admit has recorded the result
	}
}

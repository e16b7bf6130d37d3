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
	Distrusted State = "distrusted" // has contradicted itself or others: left alone for a while
	Limited    State = "limited"    // its budget is spent, or it asked for a pause
	Lagging    State = "lagging"    // too many blocks behind the others
	Leading    State = "leading"    // too many blocks ahead of all the others
)

// States are all of them.
func States() []State {
	return []State{Healthy, Unverified, Foreign, Tripped, Distrusted, Limited, Lagging, Leading}
}

// Breaker is the state of an endpoint's circuit breaker.
type Breaker string

const (
	BreakerClosed   Breaker = "closed"    // it is asked
	BreakerHalfOpen Breaker = "half-open" // one probe is due, or under way
	BreakerOpen     Breaker = "open"      // it is left alone
)

// Breakers are all of them.
func Breakers() []Breaker { return []Breaker{BreakerClosed, BreakerHalfOpen, BreakerOpen} }

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
	Lead        uint64        `json:"lead"`            // blocks ahead of all the others
	Breaker     Breaker       `json:"breaker"`
	Trips       uint64        `json:"trips"`          // of the breaker, since the start
	Lies        uint64        `json:"contradictions"` // since the start
	Differences uint64        `json:"differences"`    // from others, undecided, since the start
	Distrust    time.Duration `json:"distrust"`       // left of it
	Budget      BudgetLeft    `json:"budget"`
	LastError   string        `json:"lastError,omitempty"`
	LastErrorAt time.Time     `json:"lastErrorAt,omitzero"`
}

// Status lists the endpoints in the order of the configuration.
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

// leastBad is the best of the endpoints that may be ours, when none is healthy: one
// whose budget allows it and that is believed, if there is any; nil when all serve
// another chain.
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
			score++ // more than any score is
		}
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

// moveTo has reads go to another endpoint, if they went to this one.
func (p *Pool) moveTo(from, to *endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading == from {
		p.reading = to
	}
}

// sawHead notes an endpoint's newest block, how far it is behind the others, and who
// is ahead of all the others now.
func (p *Pool) sawHead(e *endpoint, number uint64) {
	e.mu.Lock()
	e.health.head, e.health.headAt = number, p.config.Now()
	e.mu.Unlock()
	heads := make([]uint64, len(p.endpoints))
	var known []uint64
	for i, other := range p.endpoints {
		if state := p.state(other); state == Foreign || state == Distrusted && other != e {
			continue // nobody is measured by what it says
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

// owed says what it means that an endpoint has not a block below its head. That may
// happen; but not to one that is so far ahead of all others that they are out of
// rotation for being behind: it had better be true.
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
	known, age := e.identity.known, now.Sub(e.identity.at)
	distrusted := now.Before(e.health.distrusted)
	ejected := e.identity.ejected != ""
	lost := e.identity.closes != e.closes.Load()
	if ejected && age >= p.config.Probe {
		e.identity.known = false // it may have been put right: ask again
		ejected = false
	}
	e.mu.Unlock()
	if ejected || distrusted || tripped && !due {
		return
	}
	// A node that is replaced closes its connections, though not all at once.
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
		return // counted where it happened
	}
	p.sawHead(e, uint64(head))
	if tripped {
		p.config.Log.Info("endpoint back in rotation", "chain", p.config.Chain, "endpoint", e.name)
	}
}

// identityEvery is how often an endpoint is asked who it is in any case.
const identityEvery = 30 * time.Second

// reidentify asks an endpoint that is in use who it is. It stays in use meanwhile.
func (p *Pool) reidentify(ctx context.Context, e *endpoint) {
	select {
	case e.gate <- struct{}{}:
		defer func() { <-e.gate }()
	default:
		return // it is being asked
	}
	if id, err := p.identify(ctx, e); err == nil {
		_ = p.admit(e, id) // it has noted what there is to say
	}
}

package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Pool holds the endpoints of one chain. It is safe for concurrent use. Close it
// when it is no longer needed.
type Pool struct {
	config    Config
	endpoints []*endpoint

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup

	pinning   chan struct{} // held while the genesis is pinned; guards the next two
	surveyed  time.Time
	surveyErr error

	mu      sync.Mutex
	genesis chain.Hash           // zero until pinned
	reading *endpoint            // the endpoint that reads use; nil before the first
	alone   map[lonely]time.Time // time since which no confirmation on a subject has come

	sure  sure  // receipts that other endpoints have confirmed
	words words // late confirmations

	cadence *cadence // when blocks arrive
	newest  lately[chain.Block]
	finals  lately[chain.Block]

	asking *places // limits clients' running calls
	trials trials  // limits each client's running trials
}

// Open makes a pool and asks every endpoint for its identity, for a few seconds at most.
// Endpoints that do not answer join later. Open fails only for invalid settings, or when ctx
// ends.
func Open(ctx context.Context, config Config) (*Pool, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	endpoints, err := config.endpoints()
	if err != nil {
		return nil, err
	}
	p := &Pool{config: config, endpoints: endpoints, genesis: config.Genesis, alone: map[lonely]time.Time{}, pinning: make(chan struct{}, 1), asking: placesOfClients(proxied)}
	p.cadence = newCadence(config.Poll, config.Now)
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	err = p.survey(ctx)
	if ctx.Err() != nil {
		p.Close()
		return nil, fmt.Errorf("ask the endpoints of chain %d: %w", config.Chain, ctx.Err())
	}
	if err != nil {
		config.Log.Warn("no endpoint serves the chain yet", "chain", config.Chain, "err", err)
	}
	for _, e := range p.endpoints {
		p.running.Go(func() { p.keep(e) })
	}
	return p, nil
}

// Close ends the pool's goroutines, including those started by Heads, and its connections.
func (p *Pool) Close() {
	p.cancel()
	p.running.Wait()
	for _, e := range p.endpoints {
		e.http.CloseIdleConnections()
	}
}

// verify makes sure that an endpoint serves our chain.
func (p *Pool) verify(ctx context.Context, e *endpoint) error {
	stale, err := e.standing(p.config.Now())
	if !stale {
		return err
	}
	if p.pinned().IsZero() {
		if err := p.pin(ctx); err != nil {
			return &unverified{err}
		}
	}
	select {
	case e.gate <- struct{}{}:
		defer func() { <-e.gate }()
	case <-ctx.Done():
		return &unverified{ctx.Err()}
	}
	if stale, err = e.standing(p.config.Now()); !stale {
		return err
	}
	id, err := p.identify(ctx, e)
	if err != nil {
		return &unverified{err}
	}
	return p.admit(e, id)
}

// identify asks an endpoint for its identity and updates its health. It does not ask while the
// endpoint rests: see [rest].
func (p *Pool) identify(ctx context.Context, e *endpoint) (identity, error) {
	if err := e.rested(p.config.Now()); err != nil {
		return identity{}, err
	}
	own, cancel := context.WithTimeout(ctx, min(identifyTimeout, p.config.CallTimeout))
	defer cancel()
	id, took, err := e.ask(own, p.config.Now)
	e.meter.charge(p.config.Now(), 2)
	for _, method := range []string{"eth_chainId", "eth_getBlockByNumber"} {
		p.observe(e, method, took, err)
	}
	switch l := lessonOf(len(whoCalls()), took, nil, err); {
	case err == nil:
		e.succeeded(took)
	case l.refused > 0:
		e.refusedIdentity(p.config.Now(), l)
	case ctx.Err() == nil:
		p.blame(e, err)
	}
	return id, err
}

// identifyTimeout bounds an identity call.
const identifyTimeout = 3 * time.Second

// admit records an endpoint's identity and ejects the endpoint if it serves another chain.
func (p *Pool) admit(e *endpoint, id identity) error {
	genesis := p.pinned()
	switch {
	case id.chain != p.config.Chain:
		id.ejected = otherChain(id.chain, p.config.Chain)
	case id.genesis != genesis:
		id.ejected = fmt.Sprintf("genesis is %s, not %s", id.genesis, genesis)
	}
	e.mu.Lock()
	before := e.identity
	e.identity = id
	e.mu.Unlock()
	switch {
	case id.ejected == before.ejected:
	case !before.known:
		p.config.Log.Warn("endpoint serves another chain than it is configured for", "chain", p.config.Chain, "endpoint", e.name, "serves", id.chain, "ejected", id.ejected)
	default:
		p.config.Log.Warn("endpoint changed its chain", "chain", p.config.Chain, "endpoint", e.name, "served", before.chain, "serves", id.chain, "ejected", id.ejected)
	}
	if id.ejected != "" {
		return &Ejected{e.name, id.ejected}
	}
	return nil
}

func (p *Pool) pinned() chain.Hash {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.genesis
}

// pin makes sure that the genesis is pinned. Concurrent callers share one survey, and its error
// for a moment.
func (p *Pool) pin(ctx context.Context) error {
	select {
	case p.pinning <- struct{}{}:
		defer func() { <-p.pinning }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !p.pinned().IsZero() {
		return nil
	}
	if p.surveyErr != nil && p.config.Now().Sub(p.surveyed) < recheckAfter {
		return p.surveyErr
	}
	p.surveyErr = p.survey(ctx)
	p.surveyed = p.config.Now()
	return p.surveyErr
}

// survey asks all endpoints at once for their identity, pins the genesis if it is not pinned
// yet, and admits or ejects the endpoints that answered. It fails if nothing can be pinned: no
// endpoint answered, or none serves our chain.
func (p *Pool) survey(ctx context.Context) error {
	ids := make([]identity, len(p.endpoints))
	errs := make([]error, len(p.endpoints))
	var asked sync.WaitGroup
	for i, e := range p.endpoints {
		asked.Go(func() { ids[i], errs[i] = p.identify(ctx, e) })
	}
	asked.Wait()
	p.mu.Lock()
	if p.genesis.IsZero() {
		p.genesis = majority(ids, p.config.Chain)
	}
	pinned := !p.genesis.IsZero()
	p.mu.Unlock()
	for i, id := range ids {
		if id.known {
			errs[i] = p.admit(p.endpoints[i], id)
		}
	}
	if pinned {
		return nil
	}
	return errors.Join(errs...)
}

// majority is the genesis shown by most endpoints of the chain, the first in order on a tie;
// zero if none shows any.
func majority(ids []identity, want chain.ID) (genesis chain.Hash) {
	votes := map[chain.Hash]int{}
	for _, id := range ids {
		if id.known && id.chain == want {
			votes[id.genesis]++
		}
	}
	for _, id := range ids {
		if votes[id.genesis] > votes[genesis] {
			genesis = id.genesis
		}
	}
	return genesis
}

package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// endpoint is one node: its connection, its identity and its health.
type endpoint struct {
	*client
	meter     *meter
	index     int
	webSocket string // URL; empty if it has none

	// gate is held during identity calls, so that they run one at a time.
	gate chan struct{}

	// Features that it has shown not to support.
	noBatch, noBlockReceipts atomic.Bool
	bare                     atomic.Int64 // it counts as storing no receipts until then, in Unix nanoseconds

	mu       sync.Mutex
	identity identity
	health   health
	rest     rest
	lost     lostBy
}

// identity is an endpoint's chain, as it has shown it.
type identity struct {
	known    bool
	chain    chain.ID
	genesis  chain.Hash
	connects uint64    // the client's connects count when it was asked
	closes   uint64    // likewise its closes count
	at       time.Time // time of the answer
	ejected  string    // why it does not serve our chain; empty if it does
	doubted  bool      // it must be asked again
}

// recheckAfter bounds how often an endpoint is asked for its identity if it closes its
// connection after every reply.
const recheckAfter = time.Second

// standing returns nil if the endpoint may be asked, *Ejected if it serves another chain, and
// stale if it must be asked for its identity first.
func (e *endpoint) standing(now time.Time) (stale bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := e.identity
	switch {
	case !id.known:
		return true, nil
	case (id.doubted || id.connects != e.connects.Load()) && now.Sub(id.at) >= recheckAfter:
		return true, nil
	case id.ejected != "":
		return false, &Ejected{e.name, id.ejected}
	}
	return false, nil
}

// ask asks the endpoint for its identity.
func (e *endpoint) ask(ctx context.Context, now func() time.Time) (identity, time.Duration, error) {
	began, closes := now(), e.closes.Load()
	replies, err := e.exchange(ctx, maxBlockReply, whoCalls()...)
	took := now().Sub(began)
	if err != nil {
		return identity{}, took, err
	}
	id, err := e.who(replies)
	id.connects, id.closes, id.at = e.connects.Load(), closes, now()
	return id, took, err
}

// whoCalls are the calls that ask for an endpoint's identity.
func whoCalls() []call {
	return []call{{"eth_chainId", nil}, {"eth_getBlockByNumber", []any{quantity(0), false}}}
}

// who reads the identity from the replies to whoCalls.
func (e *endpoint) who(replies []reply) (identity, error) {
	var number quantity
	if err := replies[0].into(&number); err != nil {
		return identity{}, err
	}
	id := identity{known: true, chain: chain.ID(number)}
	first, err := parseBlock(replies[1], id.chain)
	if err != nil {
		return identity{}, err
	}
	if first.block.Number != 0 {
		return identity{}, &Unreachable{Endpoint: e.name, Err: contradiction("block 0 has number %d", first.block.Number)}
	}
	id.genesis = first.block.Hash
	return id, nil
}

// exchange sends calls in one request, or one by one to an endpoint that accepts no batches.
func (e *endpoint) exchange(ctx context.Context, limit int64, calls ...call) ([]reply, error) {
	if len(calls) > 1 && e.noBatch.Load() {
		return e.singly(ctx, limit, calls)
	}
	replies, err := e.do(ctx, limit, calls...)
	if code, ok := nodeCode(err); ok && len(calls) > 1 && (code == codeInvalidRequest || code == codeUnknownMethod) && !isLimited(err) {
		if replies, err = e.singly(ctx, limit, calls); err == nil && isOwn(ctx) {
			e.noBatch.Store(true)
		}
	}
	return replies, err
}

func (e *endpoint) singly(ctx context.Context, limit int64, calls []call) ([]reply, error) {
	replies := make([]reply, len(calls))
	for i, c := range calls {
		one, err := e.do(ctx, limit, c)
		if _, answered := nodeCode(err); answered {
			one = []reply{{err: err}}
		} else if err != nil {
			return nil, err
		}
		replies[i] = one[0]
	}
	return replies, nil
}

// into decodes a reply's result. A null result leaves v as it is.
func (r reply) into(v any) error {
	if r.err != nil {
		return r.err
	}
	if err := json.Unmarshal(r.result, v); err != nil {
		return contradiction("%v", trim(err))
	}
	return nil
}

func (r reply) null() bool { return r.err == nil && string(r.result) == "null" }

// counts reports whether an error is the endpoint's fault. A node's refusal is not, unless it
// means that the node is temporarily unable.
func counts(err error) bool {
	if code, ok := nodeCode(err); ok {
		return code == codeInternal || isLimited(err)
	}
	return !errors.Is(err, errNotFound) && !errors.Is(err, context.Canceled)
}

func (e *endpoint) succeeded(took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.health.succeed(took)
}

func (e *endpoint) failed(now time.Time, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.health.fail(now, err)
	e.identity.doubted = true // a load balancer may have replaced the node
	if errors.Is(err, errContradiction) {
		e.health.contradict(now)
	}
}

// outAgain is how long an endpoint must stay in rotation before its next absence is logged. An
// endpoint that answers now and then leaves and returns all the time.
const outAgain = 10 * time.Second

// news reports whether to log that an endpoint is out of rotation.
func (e *endpoint) news(why State, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := why == e.health.outFor && now.Sub(e.health.outAt) < outAgain
	e.health.outFor, e.health.outAt = why, now
	return !known
}

// doubt makes the pool ask for the endpoint's identity before believing it again.
func (e *endpoint) doubt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.identity.doubted = true
}

// headSeen is the number of the newest block that the endpoint has shown.
func (e *endpoint) headSeen() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.health.head
}

// usual is the endpoint's usual latency.
func (e *endpoint) usual() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.health.latency
}

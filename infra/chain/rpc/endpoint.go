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

// endpoint is one node: how to talk to it, who it says it is, how it is doing.
type endpoint struct {
	*client
	meter     *meter
	index     int
	webSocket string // URL, or empty

	// gate is held while the endpoint is asked who it is, so that it is asked once.
	gate chan struct{}

	// What it has shown not to support.
	noBatch, noBlockReceipts atomic.Bool
	bare                     atomic.Int64 // until then it keeps no receipts, in Unix nanoseconds

	mu       sync.Mutex
	identity identity
	health   health
}

// identity is what an endpoint has shown of its chain.
type identity struct {
	known    bool
	chain    chain.ID
	genesis  chain.Hash
	connects uint64    // the client's count when it was asked
	closes   uint64    // likewise
	at       time.Time // when it was asked
	ejected  string    // why it is not ours; empty when it is
	doubted  bool      // since then there was reason to ask again
}

// recheckAfter bounds how often an endpoint is asked who it is when it drops its
// connection after every reply.
const recheckAfter = time.Second

// standing says whether the endpoint may be asked something: it is known and
// ours (nil), it is not ours (*Ejected), or it has to be asked first (stale).
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

// ask asks the endpoint who it is.
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

// whoCalls ask an endpoint who it is.
func whoCalls() []call {
	return []call{{"eth_chainId", nil}, {"eth_getBlockByNumber", []any{quantity(0), false}}}
}

// who is what an endpoint says to whoCalls.
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

// exchange sends calls, all in one request, or one by one to an endpoint that
// takes no batches.
func (e *endpoint) exchange(ctx context.Context, limit int64, calls ...call) ([]reply, error) {
	if len(calls) > 1 && e.noBatch.Load() {
		return e.singly(ctx, limit, calls)
	}
	replies, err := e.do(ctx, limit, calls...)
	if code, ok := nodeCode(err); ok && len(calls) > 1 && (code == codeInvalidRequest || code == codeUnknownMethod) {
		if replies, err = e.singly(ctx, limit, calls); err == nil {
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

// counts reports whether an error is the endpoint's fault. A node's "no" is not,
// save when it says that it cannot just now.
func counts(err error) bool {
	if code, ok := nodeCode(err); ok {
		return code == codeInternal || code == codeLimitExceeded
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
	e.identity.doubted = true // a balancer may have another node in its place by now
	if errors.Is(err, errContradiction) {
		e.health.contradict(now)
	}
}

// outAgain is how long an endpoint has to stay in rotation before it is logged anew that
// it is not: one that answers now and then comes and goes all the time.
const outAgain = 10 * time.Second

// news reports whether it is to be logged that an endpoint is out of rotation.
func (e *endpoint) news(why State, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := why == e.health.outFor && now.Sub(e.health.outAt) < outAgain
	e.health.outFor, e.health.outAt = why, now
	return !known
}

// doubt has the endpoint asked who it is before it is believed again.
func (e *endpoint) doubt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.identity.doubted = true
}

// headSeen is the number of the newest block it has shown.
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

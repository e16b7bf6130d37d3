package rpc

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// ask performs calls on one endpoint under their own deadline, after the endpoint has shown
// that it serves our chain. It repeats them once if the endpoint reconnected meanwhile. It
// keeps to the endpoint's budget, updates its health and calls Observe.
func (p *Pool) ask(ctx context.Context, e *endpoint, timeout time.Duration, limit int64, calls ...call) ([]reply, error) {
	return p.askFor(ctx, e, read, timeout, limit, calls...)
}

// askFor is ask with a purpose.
func (p *Pool) askFor(ctx context.Context, e *endpoint, use purpose, timeout time.Duration, limit int64, calls ...call) ([]reply, error) {
	if use == read && p.doubtful(e) {
		return p.askAnew(ctx, e, timeout, limit, calls...)
	}
	client, _ := clientOf(ctx)
	leave, err := p.enter(ctx, e, waiter{use: use, client: client, n: len(calls)}, timeout)
	if err != nil {
		return nil, err
	}
	defer leave()
	return p.perform(ctx, e, use, timeout, limit, calls...)
}

// askAnew asks an endpoint with a doubtful identity for that identity in the same request as
// the calls. With separate requests before and after the calls, an endpoint that answers only
// now and then would have to answer three times in a row.
func (p *Pool) askAnew(ctx context.Context, e *endpoint, timeout time.Duration, limit int64, calls ...call) ([]reply, error) {
	all := slices.Concat(calls, whoCalls())
	leave, err := p.meter(ctx, e, waiter{use: read, n: len(all)}, timeout)
	if err != nil {
		return nil, err
	}
	defer leave()
	closes := e.closes.Load()
	replies, err := p.exchange(ctx, e, read, timeout, limit, all...)
	if err != nil {
		return nil, err
	}
	id, err := e.who(replies[len(calls):])
	if err != nil {
		return nil, p.dispute(ctx, e, err)
	}
	id.connects, id.closes, id.at = e.connects.Load(), closes, p.config.Now()
	if err := p.admit(e, id); err != nil {
		return nil, err
	}
	return replies[:len(calls)], nil
}

// doubtful reports whether an endpoint must be asked for its identity again, and claims that
// question for the caller's request.
func (p *Pool) doubtful(e *endpoint) bool {
	stale, _ := e.standing(p.config.Now())
	return stale && e.wasOurs() && !e.noBatch.Load()
}

// wasOurs reports whether the endpoint's last known identity is our chain.
func (e *endpoint) wasOurs() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.identity.known && e.identity.ejected == ""
}

// enter waits until the endpoint has shown that it serves our chain and its budget allows the
// calls of w.
func (p *Pool) enter(ctx context.Context, e *endpoint, w waiter, patience time.Duration) (leave func(), err error) {
	if err := p.verify(ctx, e); err != nil {
		return nil, err
	}
	return p.meter(ctx, e, w, patience)
}

// meter waits until the endpoint's budget allows the calls of w.
func (p *Pool) meter(ctx context.Context, e *endpoint, w waiter, patience time.Duration) (leave func(), err error) {
	leave, err = e.meter.enter(ctx, p.config.Now, w, patience)
	if err != nil && ctx.Err() != nil {
		return nil, &unverified{err} // the caller gave up before the endpoint was asked
	}
	return leave, err
}

// perform makes calls after enter has admitted them.
func (p *Pool) perform(ctx context.Context, e *endpoint, use purpose, timeout time.Duration, limit int64, calls ...call) ([]reply, error) {
	replies, err := p.exchange(ctx, e, use, timeout, limit, calls...)
	if err != nil {
		return nil, err
	}
	if err := p.verify(ctx, e); err != nil {
		// Not verify's error: that would mean that nothing had been asked.
		return nil, &Unreachable{Endpoint: e.name, Err: errors.New("reconnected meanwhile: " + err.Error())}
	}
	return replies, nil
}

// exchange makes calls, updates the endpoint's health and calls Observe.
func (p *Pool) exchange(ctx context.Context, e *endpoint, use purpose, timeout time.Duration, limit int64, calls ...call) ([]reply, error) {
	began := p.config.Now()
	own, cancel := context.WithTimeout(ctx, timeout)
	replies, err := e.exchange(own, limit, calls...)
	cancel()
	took := p.config.Now().Sub(began)
	for i, c := range calls {
		failed := err
		if err == nil {
			failed = replies[i].err
		}
		p.observe(e, c.method, took, failed)
	}
	p.learn(ctx, e, use, lessonOf(len(calls), took, replies, err))
	return replies, err
}

// outlive is a context that ends with the pool, not with the call that needs it.
// end must be called when it is no longer needed.
func (p *Pool) outlive(ctx context.Context) (own context.Context, end func()) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(p.ctx, cancel)
	return own, func() { stop(); cancel() }
}

// blame counts an error against an endpoint.
func (p *Pool) blame(e *endpoint, err error) {
	now := p.config.Now()
	before := p.state(e)
	e.failed(now, err)
	if after := p.state(e); after != before && (after == Tripped || after == Distrusted) && e.news(after, now) {
		p.config.Log.Warn("endpoint out of rotation", "chain", p.config.Chain, "endpoint", e.name, "state", after, "err", err)
	}
}

// Call is one JSON-RPC call that was made, for Observe.
type Call struct {
	Endpoint string
	Method   string
	Class    string // purpose of the method: send, head, block, receipt, state, price, identity, client (passed on for a client), other
	Outcome  Outcome
	Took     time.Duration // time of the whole request, if it was a batch
}

// Outcome is how a call ended.
type Outcome string

const (
	OK          Outcome = "ok"
	Refused     Outcome = "refused"      // the node answered with an error
	RateLimited Outcome = "rate_limited" // HTTP 429, or an equivalent error of the node
	TimedOut    Outcome = "timeout"
	BadStatus   Outcome = "bad_status" // any other HTTP status
	Malformed   Outcome = "malformed"  // the reply violates the protocol
	Cut         Outcome = "unreachable"
	Abandoned   Outcome = "abandoned" // by us
)

func (p *Pool) observe(e *endpoint, method string, took time.Duration, err error) {
	class, ok := classes[method]
	if !ok {
		class = "other"
	}
	p.config.Observe(Call{e.name, method, class, outcomeOf(err), took})
}

var classes = map[string]string{
	"eth_sendRawTransaction": "send", "eth_blockNumber": "head", "eth_chainId": "identity",
	"eth_getBlockByNumber": "block", "eth_getBlockByHash": "block",
	"eth_getBlockReceipts": "receipt", "eth_getTransactionReceipt": "receipt", "eth_getTransactionByHash": "receipt",
	"eth_getTransactionCount": "state", "eth_call": "state", "eth_estimateGas": "state",
	"eth_feeHistory": "price", "eth_gasPrice": "price", "eth_maxPriorityFeePerGas": "price",
}

func outcomeOf(err error) Outcome {
	var lost *Unreachable
	_, answered := nodeCode(err)
	switch {
	case err == nil:
		return OK
	case isLimited(err):
		return RateLimited
	case answered:
		return Refused
	case errors.Is(err, context.Canceled):
		return Abandoned
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case !errors.As(err, &lost):
		return Malformed // its identity is malformed
	case lost.malformed:
		return Malformed
	case lost.Status != 0 && lost.Status != http.StatusOK:
		return BadStatus
	}
	return Cut
}

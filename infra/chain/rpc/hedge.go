package rpc

import (
	"context"
	"time"
)

// Limits on the wait for an endpoint. A call that takes much longer than the endpoint's usual
// latency counts as hanging.
const (
	hedgeFactor    = 4
	hedgeLast      = 600 * time.Millisecond // bounds hedgeFactor times the usual latency
	patienceFactor = 8
	patienceFirst  = time.Second // least patience with light calls
)

// hedge is how long to wait for an endpoint before another is asked as well.
func (p *Pool) hedge(e *endpoint) time.Duration {
	return max(min(hedgeFactor*e.usual(), hedgeLast), p.config.Hedge)
}

// fewCalls is the largest batch that should be answered as fast as a single call.
const fewCalls = 10

// patience is the longest wait for calls. Light calls should be answered soon; if not, another
// endpoint is asked.
func (p *Pool) patience(e *endpoint, calls []call) time.Duration {
	for _, c := range calls {
		if len(calls) > fewCalls || c.method == "eth_getBlockReceipts" {
			return p.config.CallTimeout
		}
	}
	return min(max(patienceFactor*e.usual(), patienceFirst, p.config.Hedge), p.config.HeadTimeout, p.config.CallTimeout)
}

// hedged reads from the endpoint that reads use, and also from the best other endpoint if the
// first fails or takes much longer than usual. The first answer counts, and reads stay with the
// endpoint that gave it. The other call runs on to its own deadline, so that it counts for its
// endpoint's health.
//
// All calls of one read go to one endpoint.
func hedged[T any](ctx context.Context, p *Pool, read func(ctx context.Context, e *endpoint) (T, error)) (T, error) {
	value, _, err := hedgedBy(ctx, p, read)
	return value, err
}

// hedgedBy is hedged that also returns the endpoint that answered, for callers that ask the
// other endpoints to confirm.
func hedgedBy[T any](ctx context.Context, p *Pool, read func(ctx context.Context, e *endpoint) (T, error)) (T, *endpoint, error) {
	type outcome struct {
		value T
		e     *endpoint
		err   error
	}
	first := p.reader()
	second := p.best(first)
	if second == nil {
		value, err := read(ctx, first)
		return value, first, err
	}
	answers := make(chan outcome, 2)
	begin := func(e *endpoint) {
		own, end := p.outlive(ctx)
		p.running.Go(func() {
			defer end()
			value, err := read(own, e)
			answers <- outcome{value, e, err}
		})
	}
	begin(first)
	timer := time.NewTimer(p.hedge(first))
	defer timer.Stop()
	var failed error // the first endpoint's error, or else the earliest
	for asked, over := 1, 0; ; {
		select {
		case <-ctx.Done():
			var none T
			return none, first, &Unreachable{Endpoint: first.name, Err: ctx.Err()}
		case <-timer.C:
		case got := <-answers:
			if got.err == nil {
				if isOwn(ctx) {
					p.moveTo(first, got.e)
				}
				return got.value, got.e, nil
			}
			if over++; failed == nil || got.e == first {
				failed = got.err
			}
			if over == 2 {
				p.leave(ctx, first)
				return got.value, got.e, failed
			}
		}
		if asked == 1 {
			asked = 2
			begin(second)
		}
	}
}

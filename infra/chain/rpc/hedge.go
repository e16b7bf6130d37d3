package rpc

import (
	"context"
	"time"
)

// How long an endpoint is waited for. An endpoint's usual latency says how long it
// may take: what is much longer than usual is taken for a node that hangs.
const (
	hedgeFactor    = 4
	hedgeLast      = 600 * time.Millisecond // then another is asked as well
	patienceFactor = 8
	patienceFirst  = time.Second // then its answer is given up, if it is light
)

// hedge is how long an endpoint is waited for before another is asked as well.
func (p *Pool) hedge(e *endpoint) time.Duration {
	return max(min(hedgeFactor*e.usual(), hedgeLast), p.config.Hedge)
}

// fewCalls are so few that they should be answered as soon as one.
const fewCalls = 10

// patience is how long an endpoint may take for calls. What is light should come
// soon, or another is better asked.
func (p *Pool) patience(e *endpoint, calls []call) time.Duration {
	for _, c := range calls {
		if len(calls) > fewCalls || c.method == "eth_getBlockReceipts" {
			return p.config.CallTimeout
		}
	}
	return min(max(patienceFactor*e.usual(), patienceFirst, p.config.Hedge), p.config.HeadTimeout, p.config.CallTimeout)
}

// hedged reads from the endpoint that is read from, and from the best of the others
// as well when that one fails or takes much longer than usual. The first answer
// rules, and reads stay with who gave it. The other ends behind it, at its own
// deadline, so that its health is known.
//
// What read asks in several calls goes to one endpoint.
func hedged[T any](ctx context.Context, p *Pool, read func(ctx context.Context, e *endpoint) (T, error)) (T, error) {
	value, _, err := hedgedBy(ctx, p, read)
	return value, err
}

// hedgedBy is hedged for whoever goes on to ask the others about an answer: it says
// whose word that is.
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
	var failed error // the first endpoint's, or whichever's came first
	for asked, over := 1, 0; ; {
		select {
		case <-ctx.Done():
			var none T
			return none, first, &Unreachable{Endpoint: first.name, Err: ctx.Err()}
		case <-timer.C:
		case got := <-answers:
			if got.err == nil {
				p.moveTo(first, got.e)
				return got.value, got.e, nil
			}
			if over++; failed == nil || got.e == first {
				failed = got.err
			}
			if over == 2 {
				p.leave(first)
				return got.value, got.e, failed
			}
		}
		if asked == 1 {
			asked = 2
			begin(second)
		}
	}
}

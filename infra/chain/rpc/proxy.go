package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// proxied bounds the clients' calls running at once in one pool, so that connections remain for
// delivery. Clients take turns for them, see [places].
const proxied = defaultConcurrency / 2

// tooLarge is the error for a reply over its limit; its value is the limit in bytes.
type tooLarge int64

func (n tooLarge) Error() string { return fmt.Sprintf("reply is larger than %d bytes", int64(n)) }

// Limit returns the limit in bytes, for callers that pass it on.
func (n tooLarge) Limit() int64 { return int64(n) }

// Ask sends a client's call to a node and returns its result as the node wrote it. client is
// empty if all clients are one. The next node is asked if one does not answer, is temporarily
// unable, or returns a result that usable (which may be nil) rejects. If all nodes have been
// asked, the first rejected result is the answer.
//
// The error is a *NodeError if a node declined the call, which is an answer too. For a result
// above limit bytes the error has a method Limit. For a budget that refuses the call it has a
// method Withheld. Clients' calls do not count for an endpoint's health: clients could take
// endpoints out of rotation by asking for too much.
func (p *Pool) Ask(ctx context.Context, client, method string, params json.RawMessage, limit int64, usable func(result json.RawMessage) bool) (json.RawMessage, error) {
	ask, err := callOf(method, params)
	if err != nil {
		return nil, err
	}
	ctx = ofClient(ctx, client)
	leave, err := p.place(ctx, client)
	if err != nil {
		return nil, err
	}
	defer leave()
	var unusable json.RawMessage
	var failed error
	order := p.inOrder()
	for i, e := range order {
		timeout := p.config.CallTimeout
		if i < len(order)-1 {
			timeout /= 2 // a hanging node leaves time for another
		}
		result, err := p.forward(ctx, e, client, timeout, ask, limit)
		switch {
		case err == nil && (usable == nil || usable(result)):
			return result, nil
		case err == nil && unusable == nil:
			unusable = result
		case err == nil:
		case ctx.Err() != nil, isTooLarge(err), isAnswer(err):
			return nil, err
		case failed == nil:
			failed = err
		}
	}
	if unusable != nil {
		return unusable, nil
	}
	return nil, failed
}

// place waits for one of the places of clients' calls. leave gives it back.
func (p *Pool) place(ctx context.Context, client string) (leave func(), err error) {
	place := waiter{use: onBehalf, client: client, n: 1}
	if !p.asking.take(ctx, &place, nil) {
		full := fmt.Sprintf("%d calls of clients are under way to the nodes of the chain", p.asking.underWay())
		return nil, errors.Join(ctx.Err(), &Spent{fmt.Sprintf("chain %d", p.config.Chain), full, full})
	}
	return func() { p.asking.leave(&place) }, nil
}

// callOf makes a call with a client's parameters, an array or nothing.
func callOf(method string, params json.RawMessage) (call, error) {
	var list []json.RawMessage
	if len(params) > 0 {
		if err := json.Unmarshal(params, &list); err != nil {
			return call{}, fmt.Errorf("parameters of %s: %w", method, trim(err))
		}
	}
	c := call{method: method, params: make([]any, len(list))}
	for i, p := range list {
		c.params[i] = p
	}
	return c, nil
}

// inOrder lists the endpoints in the order to ask: the one that reads use, then the healthy
// ones, then the others that may serve our chain.
func (p *Pool) inOrder() []*endpoint {
	order := []*endpoint{p.reader()}
	for _, e := range append(p.healthy(), p.endpoints...) {
		if !slices.Contains(order, e) && p.state(e) != Foreign {
			order = append(order, e)
		}
	}
	return order
}

// forward sends a call to one endpoint, after it has shown that it serves our chain, and within
// its budget.
func (p *Pool) forward(ctx context.Context, e *endpoint, client string, timeout time.Duration, c call, limit int64) (json.RawMessage, error) {
	leave, err := p.enter(ctx, e, waiter{use: onBehalf, client: client, n: 1}, timeout)
	if err != nil {
		return nil, err
	}
	defer leave()
	began := p.config.Now()
	own, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	replies, err := e.do(own, limit, c)
	if err == nil {
		err = replies[0].err
	}
	took := p.config.Now().Sub(began)
	p.config.Observe(Call{e.name, c.method, "client", outcomeOf(err), took})
	p.learn(ctx, e, onBehalf, lessonOf(1, took, nil, err))
	if err != nil {
		return nil, err
	}
	return replies[0].result, nil
}

// isAnswer reports whether a node's error is about the call. It is not if the node, or a proxy
// before it, is out of order or does not offer the method.
func isAnswer(err error) bool {
	code, ok := nodeCode(err)
	return ok && !isUnable(err) && code != codeUnknownMethod && code != codeUnsupported
}

func isTooLarge(err error) bool {
	var over tooLarge
	return errors.As(err, &over)
}

// Declined returns the node's error, for callers that pass it on.
func (e *NodeError) Declined() (code int, message string, data json.RawMessage) {
	return e.Code, e.Message, e.Data
}

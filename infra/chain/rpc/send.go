package rpc

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"unicode/utf8"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// Send hands raw to as many healthy endpoints as the fan-out says, beginning one
// further with each attempt, all at once and each under its own deadline. It
// returns one answer per endpoint asked, in that order, and never none: when no
// endpoint is healthy it asks the least bad one. hash is what the node must
// answer with: an endpoint that answers with another has answered nothing.
func (p *Pool) Send(ctx context.Context, raw []byte, hash chain.Hash, attempt int) []tx.Answer {
	return p.sendTo(ctx, p.targets(attempt), raw, hash)
}

// SendAll hands raw to every healthy endpoint, as Send does: a permanent refusal
// is a verdict only when all of them give it. When none is healthy it asks all
// that may serve our chain, so that one of them alone decides nothing.
func (p *Pool) SendAll(ctx context.Context, raw []byte, hash chain.Hash) []tx.Answer {
	targets := p.healthy()
	if len(targets) == 0 {
		targets = p.endpoints // the foreign ones among them say so and are sent nothing
	}
	return p.sendTo(ctx, targets, raw, hash)
}

func (p *Pool) sendTo(ctx context.Context, targets []*endpoint, raw []byte, hash chain.Hash) []tx.Answer {
	answers := make([]tx.Answer, len(targets))
	var asked sync.WaitGroup
	for i, e := range targets {
		asked.Go(func() { answers[i] = p.send(ctx, e, raw, hash) })
	}
	asked.Wait()
	return answers
}

// targets are the endpoints that an attempt asks, at least one.
func (p *Pool) targets(attempt int) []*endpoint {
	healthy := p.healthy()
	if len(healthy) == 0 {
		if e := p.leastBad(); e != nil {
			return []*endpoint{e}
		}
		return p.endpoints[:1] // which answers that it serves another chain
	}
	targets := make([]*endpoint, min(p.config.Fanout, len(healthy)))
	for i := range targets {
		targets[i] = healthy[(uint(attempt)+uint(i))%uint(len(healthy))]
	}
	return targets
}

func (p *Pool) send(ctx context.Context, e *endpoint, raw []byte, hash chain.Hash) tx.Answer {
	began := p.config.Now()
	replies, err := p.ask(ctx, e, p.config.SendTimeout, maxSmallReply,
		call{"eth_sendRawTransaction", []any{"0x" + hex.EncodeToString(raw)}})
	if err == nil {
		err = replies[0].err
	}
	answer := answerOf(err)
	if err == nil {
		var said chain.Hash
		err = replies[0].into(&said)
		if err == nil && said != hash {
			err = contradiction("the node calls the transaction %s", said)
		}
		if err != nil {
			p.blame(e, err)
			answer = tx.Answer{Class: tx.Unknown, Message: err.Error()}
		}
	}
	answer.Endpoint, answer.Took = e.name, p.config.Now().Sub(began)
	answer.Message = cut(e.clean(answer.Message), tx.MaxMessageBytes)
	return answer
}

// answerOf says what an error to a broadcast means.
func answerOf(err error) tx.Answer {
	var node *NodeError
	var lost *Unreachable
	var unasked *unverified
	var foreign *Ejected
	switch {
	case err == nil:
		return tx.Answer{Class: tx.Taken}
	case errors.As(err, &unasked), errors.As(err, &foreign):
		return tx.Answer{Class: tx.Retry, Cause: tx.Unreachable, Message: err.Error()}
	case errors.As(err, &node):
		class, cause := Classify(node.Code, node.Message)
		return tx.Answer{Class: class, Cause: cause, Code: node.Code, Message: node.Message}
	case errors.As(err, &lost) && lost.Status == http.StatusTooManyRequests:
		return tx.Answer{Class: tx.Retry, Cause: tx.RateLimited, Code: lost.Status, Message: lost.Err.Error()}
	case errors.As(err, &lost):
		answer := tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Message: lost.Err.Error()}
		if lost.Status != http.StatusOK {
			answer.Code = lost.Status
		}
		return answer
	}
	return tx.Answer{Class: tx.Unknown, Cause: tx.Unreachable, Message: fmt.Sprint(err)}
}

// cut shortens a text to at most n bytes of whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

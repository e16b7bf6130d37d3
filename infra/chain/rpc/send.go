package rpc

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Send sends raw to Fanout healthy endpoints at once, beginning one further with each attempt,
// each under its own deadline. It returns one answer per endpoint, in that order, and at least
// one: if no endpoint is healthy it asks the best of the others. The node must answer with
// hash; any other hash counts as no answer.
//
// It returns as soon as one endpoint has accepted the bytes, or ctx ends. Running requests then
// continue to their own deadlines, and still count for the endpoints' health. An endpoint that
// was sent the bytes and has not answered is tx.Unknown, for it may accept them. An endpoint
// that was not sent the bytes is tx.Retry, and is not sent them later.
//
// First attempts and repeats use their client's share of each endpoint's budget, clients take turns,
// and a node's request for a pause (429) pauses this client's calls of the kind alone. A transaction
// that the relay has signed takes turns apart from its client's other calls. Nothing that the client
// has used up stops it, and its answer stops nothing: other clients' transactions wait for its nonce.
func (p *Pool) Send(ctx context.Context, raw []byte, hash chain.Hash, attempt int, of tx.Sending) []tx.Answer {
	errand := errandOf(hash, of)
	w := errand.waiter()
	return p.sendTo(ctx, p.targets(attempt, &w), raw, errand)
}

// errand is what a broadcast is for: a client's first attempt, or a repeat.
type errand struct {
	hash   chain.Hash
	use    purpose // broadcast or repeat
	client string
	lane   bool // see [tx.Sending]
}

func errandOf(hash chain.Hash, of tx.Sending) errand {
	if of.Repeat {
		return errand{hash, repeat, of.Client, of.Lane}
	}
	return errand{hash, broadcast, of.Client, of.Lane}
}

// waiter is the request for the broadcast's call of an endpoint.
func (e errand) waiter() waiter { return waiter{use: e.use, client: e.client, n: 1, lane: e.lane} }

// laneKey is the context key of broadcasts of transactions that the relay has signed.
type laneKey struct{}

func isOfLane(ctx context.Context) bool { return ctx.Value(laneKey{}) != nil }

// SendAll sends raw to every healthy endpoint, like Send. A permanent refusal is a verdict only
// if all of them give it, so all are waited for unless one accepts the bytes. If none is
// healthy, it asks all endpoints that may serve our chain, so that none of them decides alone.
func (p *Pool) SendAll(ctx context.Context, raw []byte, hash chain.Hash, attempt int, of tx.Sending) []tx.Answer {
	targets := p.healthy()
	if len(targets) == 0 {
		targets = p.endpoints // the foreign ones among them are sent nothing
	}
	return p.sendTo(ctx, targets, raw, errandOf(hash, of))
}

// targets are the endpoints that an attempt asks, at least one. Endpoints that would be sent a
// broadcast of w at once go first.
func (p *Pool) targets(attempt int, w *waiter) []*endpoint {
	healthy := p.healthy()
	if len(healthy) == 0 {
		if e := p.leastBad(); e != nil {
			return []*endpoint{e}
		}
		return p.endpoints[:1] // it answers that it serves another chain
	}
	now := p.config.Now()
	turn := int(uint(attempt) % uint(len(healthy)))
	var ready, full []*endpoint
	for _, e := range slices.Concat(healthy[turn:], healthy[:turn]) {
		if e.meter.room(now, w) {
			ready = append(ready, e)
		} else {
			full = append(full, e)
		}
	}
	return append(ready, full...)[:min(p.config.Fanout, len(healthy))]
}

// graceMax bounds the wait for the other endpoints after the first has accepted the bytes. The
// wait is as long as the first took, at most this.
const graceMax = 20 * time.Millisecond

func (p *Pool) sendTo(ctx context.Context, targets []*endpoint, raw []byte, of errand) []tx.Answer {
	ctx = ofClient(ctx, of.client)
	if of.lane {
		ctx = context.WithValue(ctx, laneKey{}, true)
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop() // endpoints still waiting for their turn stop
	sending, end := p.outlive(ctx)
	d := &delivery{
		pool: p, targets: targets, errand: of, began: p.config.Now(),
		call:    call{"eth_sendRawTransaction", []any{"0x" + hex.EncodeToString(raw)}},
		answers: make([]tx.Answer, len(targets)), handed: make([]bool, len(targets)),
		left: len(targets), taken: make(chan struct{}), all: make(chan struct{}),
	}
	for i := range targets {
		p.running.Go(func() {
			if d.to(waiting, sending, i) {
				end()
			}
		})
	}
	select {
	case <-d.all:
	case <-ctx.Done():
	case <-d.taken:
		grace := time.NewTimer(min(p.config.Now().Sub(d.began), graceMax))
		defer grace.Stop()
		select {
		case <-d.all:
		case <-ctx.Done():
		case <-grace.C:
		}
	}
	return d.report(ctx.Err())
}

// delivery is one broadcast to several endpoints. It may outlive its caller.
type delivery struct {
	pool    *Pool
	targets []*endpoint
	call    call
	errand
	began time.Time

	taken, all chan struct{} // closed when one has the bytes; when all have answered

	mu      sync.Mutex
	answers []tx.Answer // Class is empty until the answer arrives
	handed  []bool      // the bytes may have been sent to the endpoint
	left    int         // missing answers
	has     bool        // taken is closed
	proven  bool        // an endpoint took the bytes, and called the transaction by its hash
	lies    []lie       // other hashes that endpoints have told, until another endpoint proves them false
	over    bool        // reported: no endpoint is sent the bytes any more
}

// lie is another hash of the transaction, told by an endpoint.
type lie struct {
	by  *endpoint
	err error
}

// to sends the bytes to one endpoint and records its answer. last reports whether it was the
// last one. An endpoint that tells another hash is blamed only if another endpoint tells the hash
// of the same bytes: then the bytes, which a client chose, are not to blame.
func (d *delivery) to(waiting, sending context.Context, i int) (last bool) {
	e := d.targets[i]
	answer, otherHash := d.ask(waiting, sending, i, e)
	answer.Endpoint, answer.Took = e.name, d.pool.config.Now().Sub(d.began)
	answer.Message = cut(e.clean(answer.Message), tx.MaxMessageBytes)
	last, proven := d.record(i, answer, otherHash)
	for _, l := range proven {
		d.pool.blame(l.by, l.err)
	}
	return last
}

// record records an endpoint's answer, with the error of another hash in it. It returns the lies
// that are proven now.
func (d *delivery) record(i int, answer tx.Answer, otherHash error) (last bool, proven []lie) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[i] = answer
	if otherHash != nil {
		d.lies = append(d.lies, lie{d.targets[i], otherHash})
	}
	if d.proven = d.proven || answer.Class == tx.Taken; d.proven {
		proven, d.lies = d.lies, nil
	}
	if d.left--; d.left == 0 {
		close(d.all)
	}
	if !d.has && (answer.Class == tx.Taken || answer.Class == tx.Known) {
		d.has = true
		close(d.taken)
	}
	return d.left == 0, proven
}

// ask sends the bytes to an endpoint. otherHash is the error of an answer with another hash.
func (d *delivery) ask(waiting, sending context.Context, i int, e *endpoint) (answer tx.Answer, otherHash error) {
	p := d.pool
	leave, err := p.enter(waiting, e, d.waiter(), p.config.SendTimeout)
	if err != nil {
		return answerOf(err), nil
	}
	defer leave()
	if !d.hand(i) {
		return tx.Answer{Class: tx.Retry, Message: notAsked}, nil
	}
	replies, err := p.perform(sending, e, d.use, p.config.SendTimeout, maxSmallReply, d.call)
	if err == nil {
		err = replies[0].err
	}
	if err != nil {
		return answerOf(err), nil
	}
	var said chain.Hash
	err = replies[0].into(&said)
	if err == nil && said != d.hash {
		otherHash = contradiction("the node calls the transaction %s", said)
		err = otherHash
	}
	if err != nil {
		return tx.Answer{Class: tx.Unknown, Message: err.Error()}, otherHash
	}
	return tx.Answer{Class: tx.Taken}, nil
}

// Messages for endpoints that have not answered.
const (
	notAsked = "not asked: another endpoint has the bytes"
	notYet   = "no answer yet when another endpoint had taken the bytes"
	tooLate  = "no answer yet when the attempt's time was up"
	noTime   = "not asked: the attempt's time was up"
)

// hand records that the bytes are about to be sent to an endpoint. It returns false after the
// report, so that an endpoint reported as not asked is not asked.
func (d *delivery) hand(i int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return false
	}
	d.handed[i] = true
	return true
}

// report ends the caller's part in the delivery and returns the answers so far. up is the
// reason why the caller's time is over, if it is.
func (d *delivery) report(up error) []tx.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	answers := slices.Clone(d.answers)
	for i := range answers {
		a := &answers[i]
		if a.Class != "" {
			continue
		}
		a.Endpoint, a.Took = d.targets[i].name, d.pool.config.Now().Sub(d.began)
		timely := d.has || up == nil
		switch {
		case d.handed[i] && timely:
			a.Class, a.Message = tx.Unknown, notYet
		case d.handed[i]:
			a.Class, a.Cause, a.Message = tx.Unknown, tx.Unreachable, tooLate
		case timely:
			a.Class, a.Message = tx.Retry, notAsked
		default:
			a.Class, a.Cause, a.Message = tx.Retry, tx.Unreachable, noTime
		}
	}
	return answers
}

// answerOf converts a broadcast error to an answer.
func answerOf(err error) tx.Answer {
	var node *NodeError
	var lost *Unreachable
	var unasked *unverified
	var foreign *Ejected
	var spent *Spent
	switch {
	case errors.As(err, &spent):
		return tx.Answer{Class: tx.Retry, Cause: tx.RateLimited, Message: err.Error()}
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

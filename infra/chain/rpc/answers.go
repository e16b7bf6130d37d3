package rpc

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// lesson is the result of an exchange, for [Pool.learn].
type lesson struct {
	calls int
	took  time.Duration
	err   error // of the exchange, or of a call in it that counts against the node
}

// failureOf is the error of an exchange, or of a call in it that means that the node is unable.
func failureOf(replies []reply, err error) error {
	for i := 0; err == nil && i < len(replies); i++ {
		if replies[i].err != nil && counts(replies[i].err) {
			err = replies[i].err
		}
	}
	return err
}

// learn applies the package's rule: an answer changes what all calls share, the endpoint's health,
// its pause and its rate, only if it answers a read of our own. Nodes refuse, delay and limit calls
// because of their content, their sender or their method, so whoever decides these decides the
// answers too. The answer to a client's call changes the pause and the rate of this client's calls of
// the same purpose at this endpoint; the answer to a transaction that the relay has signed changes
// neither. A client's lost broadcast counts for the endpoint's health once
// another client has lost one too.
//
// All answers to calls pass through here, except identities, which no client can ask for.
func (p *Pool) learn(ctx context.Context, e *endpoint, use purpose, l lesson) {
	now := p.config.Now()
	client, _ := clientOf(ctx)
	w := waiter{use: use, client: client, n: l.calls, lane: isOfLane(ctx)}
	limited, pause := limits(l.err)
	crowded := false
	switch {
	case w.lane && (limited || pause > 0): // its signer, which many clients share, may be what the node limits
	case limited || pause > 0:
		crowded = e.meter.refused(now, &w, limited, pause)
	case hasAnswered(l.err):
		e.meter.answered(now, &w)
	}
	switch {
	case l.err != nil && ctx.Err() != nil: // a caller that gives up says nothing about the endpoint
	case use.ofClients():
		if isBroadcast(ctx, use) && isLost(l.err) && e.lostBoth(client, now) {
			p.blame(e, l.err)
		}
	case limited && crowded: // it says how much clients send
	case l.err != nil && counts(l.err):
		p.blame(e, l.err)
	default:
		e.succeeded(l.took)
	}
}

// isBroadcast reports whether a call hands over a client's transaction.
func isBroadcast(ctx context.Context, use purpose) bool {
	return use == broadcast || use == repeat && isOwn(ctx)
}

// isLost reports whether no answer came: no connection, or no answer in time.
func isLost(err error) bool {
	var lost *Unreachable
	return errors.As(err, &lost) && !lost.malformed && (lost.Status == 0 || errors.Is(err, context.DeadlineExceeded))
}

// lostTogether is the time within which two clients must lose broadcasts for them to count.
const lostTogether = 10 * time.Second

// lostBy is the last lost broadcast that has not counted.
type lostBy struct {
	client string
	at     time.Time
}

// lostBoth records a client's lost broadcast, and reports whether another client has lost one shortly
// before. Both count once: however many one client loses, they count no more often than others lose
// theirs.
func (e *endpoint) lostBoth(client string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.lost; !l.at.IsZero() && l.client != client && now.Sub(l.at) <= lostTogether {
		e.lost = lostBy{}
		return true
	}
	e.lost = lostBy{client, now}
	return false
}

// limits reports whether a node refused calls because of their rate (429), and the pause that it
// asked for; 0 if none.
func limits(err error) (limited bool, pause time.Duration) {
	var lost *Unreachable
	if !errors.As(err, &lost) {
		return false, 0
	}
	return lost.Status == http.StatusTooManyRequests, lost.retryAfter
}

// hasAnswered reports whether a node has dealt with calls.
func hasAnswered(err error) bool {
	_, answered := nodeCode(err)
	return err == nil || answered
}

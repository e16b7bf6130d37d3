package rpc

import (
	"context"
	"errors"
	"time"
)

// lesson is the result of an exchange, for [Pool.learn].
type lesson struct {
	calls   int
	refused int           // calls refused because of their rate
	pause   time.Duration // that the node asked for; 0 if none
	took    time.Duration
	err     error // of the exchange, or of a call in it that counts against the node
}

// lessonOf is the result of n calls. A node may refuse some calls of a batch alone.
func lessonOf(n int, took time.Duration, replies []reply, err error) lesson {
	l := lesson{calls: n, took: took, err: failureOf(replies, err)}
	limited, pause := limits(err)
	if l.pause = pause; limited {
		l.refused = n
	}
	for _, r := range replies {
		if isLimited(r.err) {
			l.refused++
		}
	}
	return l
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
	if answered := l.calls - l.refused; answered > 0 && hasAnswered(l.err) {
		e.meter.answered(now, &waiter{use: use, client: client, n: answered, lane: w.lane})
	}
	crowded := false
	// The signer of a lane, which many clients share, may be what the node limits.
	if !w.lane && (l.refused > 0 || l.pause > 0) {
		crowded = e.meter.refused(now, &w, l.refused > 0, l.pause)
	}
	switch {
	case l.err != nil && ctx.Err() != nil: // a caller that gives up says nothing about the endpoint
	case use.ofClients():
		if isBroadcast(ctx, use) && isLost(l.err) && e.lostBoth(client, now) {
			p.blame(e, l.err)
		}
	case l.refused > 0 && crowded: // it says how much clients send
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

// hasAnswered reports whether a node has dealt with calls.
func hasAnswered(err error) bool {
	_, answered := nodeCode(err)
	return err == nil || answered
}

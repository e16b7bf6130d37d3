package worker

import (
	"errors"
	"maps"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// An intent that gives way has delayed the lane. A client could repeat that with one intent
// after the other, so its intents of the same scope wait before they get nonces again,
// longer each time. The delays are kept in memory: a new holder of the lane starts without
// them.

// penaltyMax bounds the delay. It is also the time without a delay after which a client
// starts anew.
const penaltyMax = time.Hour

// errPatient: intents of the client gave way lately.
var errPatient = errors.New("its client's recent intents lost their nonces to no-ops")

// scope selects the intents of a client that a penalty delays.
type scope int

const (
	scopeLimited   scope = iota // intents that limit how they pay
	scopeDemanding              // and intents that set their gas limit or move value
	scopeAll
)

// penalty delays the intents of a client.
type penalty struct {
	wait  time.Duration
	until time.Time
	scope scope
	// leftOut counts the client's intents that gave way as blocks left them out.
	leftOut int
}

// penalize delays the front's client after its intents gave way: first for
// [Settings.Stall], then twice as long each time. Intents of the front's scope and of lower
// scopes wait.
func (a *actor) penalize(front standing) {
	now := a.Now()
	maps.DeleteFunc(a.penalties, func(_ string, p penalty) bool { return now.Sub(p.until) >= penaltyMax })
	client := front.job.intent.State.Requested.Request.Client
	p := a.penalties[client]
	p.wait = min(max(2*p.wait, a.Settings.Stall), penaltyMax)
	p.until, p.scope = now.Add(p.wait), max(p.scope, a.scopeOf(front.job))
	if a.isLeftOut(front) {
		p.leftOut++
	}
	a.penalties[client] = p
}

// scopeOf returns the least scope that an intent belongs to.
func (a *actor) scopeOf(j *job) scope {
	switch r := j.intent.State.Requested.Request; {
	case a.limits(j):
		return scopeLimited
	case r.Gas.Limit != 0 || !valueOf(r).IsZero():
		return scopeDemanding
	}
	return scopeAll
}

// patient refuses requests of clients with a penalty, each for the job of a.ready in its place.
func (a *actor) patient(requests []*intent.Request) []error {
	answers, now := make([]error, len(requests)), a.Now()
	for i, r := range requests {
		if p := a.penalties[r.Client]; now.Before(p.until) && a.scopeOf(a.ready[i]) <= p.scope {
			answers[i] = errPatient
		}
	}
	return answers
}

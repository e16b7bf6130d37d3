package relayer

import (
	"errors"
	"maps"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/intent"
)

// An intent that gives way has delayed the lane. A client could repeat that with one intent
// after the other, so its limited intents wait before they get nonces again, longer each
// time. The delays are kept in memory: a new holder of the lane starts without them.

// penaltyMax bounds the delay, and a client without intents that gave way for so long after
// a delay starts anew.
const penaltyMax = time.Hour

// errPatient: intents of the client gave way lately.
var errPatient = errors.New("intents of its client gave way lately, and it limits how it pays as they did")

// penalty delays the limited intents of a client.
type penalty struct {
	wait  time.Duration
	until time.Time
}

// penalize delays a client after its intents gave way: first for [Settings.Stall], then
// twice as long each time.
func (a *actor) penalize(client string) {
	now := a.Now()
	maps.DeleteFunc(a.penalties, func(_ string, p penalty) bool { return now.Sub(p.until) >= penaltyMax })
	p := a.penalties[client]
	p.wait = min(max(2*p.wait, a.Settings.Stall), penaltyMax)
	p.until = now.Add(p.wait)
	a.penalties[client] = p
}

// patient refuses limited requests of clients with a penalty.
func (a *actor) patient(requests []*intent.Request) []error {
	answers, now := make([]error, len(requests)), a.Now()
	for i, r := range requests {
		if isLimited(r.Gas) && now.Before(a.penalties[r.Client].until) {
			answers[i] = errPatient
		}
	}
	return answers
}

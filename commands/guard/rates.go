package guard

import (
	"maps"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/safeguard"
)

// ErrRate refuses what is asked for too often. Its code is that of every other limit of
// the kind.
const ErrRate = event.Refusal("rate-limited")

// ratesMax bounds of how many clients and subjects it is known how often they asked. Past
// that those are forgotten that may ask as much as ever, and if there are none, all.
const ratesMax = 100_000

// rates counts how often is asked in this process. Zero is ready for use.
type rates struct {
	mu   sync.Mutex
	full map[who]time.Time // when each may ask for as much as ever again
}

// who asks: everybody together, a client, or somebody for a subject.
type who struct {
	kind            safeguard.ScopeKind
	client, subject string
}

// take counts one request, or refuses it ([Later]), and then counts it for nobody.
func (r *rates) take(now time.Time, s safeguard.State, client, subject string) error {
	limits := map[who]safeguard.Rate{}
	if rate, any := s.Rate(); any {
		limits[who{kind: safeguard.Deployment}] = rate
	}
	if rate, any := s.ClientRate(client); any {
		limits[who{safeguard.OfClient, client, ""}] = rate
	}
	if rate, any := s.SubjectRate(); any && subject != "" {
		limits[who{safeguard.EachSubject, client, subject}] = rate
	}
	if len(limits) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	after := map[who]time.Time{}
	var refused *Later // by the rate that it has to wait for longest
	for w, rate := range limits {
		interval := time.Second / time.Duration(rate.PerSecond)
		window := interval * time.Duration(rate.Burst)
		// A rate that was raised, or a clock that was set back, must not lock out.
		missing := min(max(r.full[w].Sub(now), 0), window) + interval
		if wait := missing - window; wait > 0 && (refused == nil || wait > refused.Wait) {
			refused = &Later{
				Why:  ErrRate.Because("the %s may ask %d times in a second, and %d times at once", name(w), rate.PerSecond, rate.Burst),
				Wait: wait, Name: string(w.kind), Rate: rate,
			}
		}
		after[w] = now.Add(missing)
	}
	if refused != nil {
		return refused
	}
	r.forget(now)
	maps.Copy(r.full, after)
	return nil
}

func name(w who) string {
	if w.kind == safeguard.EachSubject {
		return "subject " + w.subject
	}
	return safeguard.Scope{Kind: w.kind, Client: w.client}.String()
}

// forget makes room.
func (r *rates) forget(now time.Time) {
	if r.full != nil && len(r.full) < ratesMax {
		return
	}
	maps.DeleteFunc(r.full, func(_ who, full time.Time) bool { return !full.After(now) })
	if r.full == nil || len(r.full) >= ratesMax {
		r.full = map[who]time.Time{}
	}
}

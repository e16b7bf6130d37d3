package guard

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/rate"
	"github.com/tempo-watchtower/watchtower/domain/safeguard"
)

// ErrRate refuses what is asked for too often. Its code is that of every other limit of
// the kind.
const ErrRate = event.Refusal("rate-limited")

// ratesMax bounds of how many clients and subjects it is known how often they asked. Past
// that those are forgotten that may ask as much as ever; and until no more than ratesKept
// are left, the subjects of the client that has most: else one client that invents
// subjects would have the others' forgotten, or be worth a search with each request.
const (
	ratesMax  = 100_000
	ratesKept = ratesMax / 4 * 3
)

// Buckets count how often is asked of all replicas together. What they promise: Take takes
// one out of each bucket if every one has one left, else none, and says of each how long it
// is until it has one; by the clock of whoever keeps them. After an error nothing is known.
// They may be lost at any time, which fills them.
type Buckets interface {
	Take(ctx context.Context, of []rate.Bucket) ([]time.Duration, error)
}

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

// limited is somebody whom a rate holds for.
type limited struct {
	who
	rate safeguard.Rate
}

// limitsOf are the rates that hold for a request, in the order in which all ask for them.
func limitsOf(s safeguard.State, client, subject string) (all []limited) {
	if r, any := s.Rate(); any {
		all = append(all, limited{who{kind: safeguard.Deployment}, r})
	}
	if r, any := s.ClientRate(client); any {
		all = append(all, limited{who{safeguard.OfClient, client, ""}, r})
	}
	if r, any := s.SubjectRate(); any && subject != "" {
		all = append(all, limited{who{safeguard.EachSubject, client, subject}, r})
	}
	return all
}

// rated counts one request, or refuses it ([Later]), and then counts it for nobody. It is
// counted here, and, where there are any, in the buckets of all replicas: if these are out
// of reach it is for this one alone.
func (g *Guard) rated(ctx context.Context, now time.Time, s safeguard.State, client, subject string) error {
	limits := limitsOf(s, client, subject)
	if len(limits) == 0 {
		return nil
	}
	if waits := g.rates.take(now, limits); waits != nil {
		return refusal(limits, waits)
	}
	if g.Buckets == nil {
		return nil
	}
	buckets := make([]rate.Bucket, len(limits))
	for i, l := range limits {
		buckets[i] = rate.BucketOf(l.rate.Interval(), l.rate.Window(), string(l.kind), l.client, l.subject)
	}
	waits, err := g.Buckets.Take(ctx, buckets)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		g.Log.Debug("rates are counted by this replica alone", "err", err)
	case waits != nil:
		g.rates.giveBack(limits)
		return refusal(limits, waits)
	}
	return nil
}

// refusal is by the rate that has to be waited for longest.
func refusal(limits []limited, waits []time.Duration) error {
	i := 0
	for n, wait := range waits {
		if wait > waits[i] {
			i = n
		}
	}
	l := limits[i]
	return &Later{
		Why:  ErrRate.Because("the %s may ask %d times in a second, and %d times at once", name(l.who), l.rate.PerSecond, l.rate.Burst),
		Wait: waits[i], Name: string(l.kind), Rate: l.rate,
	}
}

// take counts one for each, or for nobody: then it says how long each has to wait.
func (r *rates) take(now time.Time, limits []limited) (waits []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	after := map[who]time.Time{}
	for i, l := range limits {
		window := l.rate.Window()
		// A rate that was lowered, or a clock that was set back, must not lock out.
		if full := now.Add(window); r.full[l.who].After(full) {
			r.full[l.who] = full
		}
		missing := max(r.full[l.who].Sub(now), 0) + l.rate.Interval()
		if wait := missing - window; wait > 0 {
			if waits == nil {
				waits = make([]time.Duration, len(limits))
			}
			waits[i] = wait
		}
		after[l.who] = now.Add(missing)
	}
	if waits == nil {
		maps.Copy(r.full, after)
	}
	return waits
}

// giveBack takes back what was counted and came to nothing.
func (r *rates) giveBack(limits []limited) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range limits {
		if full, known := r.full[l.who]; known {
			r.full[l.who] = full.Add(-l.rate.Interval())
		}
	}
}

func name(w who) string {
	if w.kind == safeguard.EachSubject {
		return "subject " + w.subject
	}
	return safeguard.Scope{Kind: w.kind, Client: w.client}.String()
}

// forget makes room.
func (r *rates) forget(now time.Time) {
	if r.full == nil {
		r.full = map[who]time.Time{}
	}
	if len(r.full) < ratesMax {
		return
	}
	subjects := map[string]int{} // of each client
	for w, full := range r.full {
		switch {
		case !full.After(now):
			delete(r.full, w)
		case w.kind == safeguard.EachSubject:
			subjects[w.client]++
		}
	}
	most := slices.SortedFunc(maps.Keys(subjects), func(a, b string) int {
		return cmp.Or(cmp.Compare(subjects[b], subjects[a]), cmp.Compare(a, b))
	})
	forgotten := map[string]bool{}
	for left, i := len(r.full), 0; left > ratesKept && i < len(most); i++ {
		forgotten[most[i]] = true
		left -= subjects[most[i]]
	}
	maps.DeleteFunc(r.full, func(w who, _ time.Time) bool { return w.kind == safeguard.EachSubject && forgotten[w.client] })
}

package guard

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/relay/rate"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// ErrRate refuses requests beyond a rate. Its code is the code of every other rate limit.
const ErrRate = eventlog.Refusal("rate-limited")

// ratesMax bounds how many clients and subjects are counted. Beyond it, entries with a full
// allowance are dropped. Then the subjects of the client with the most are dropped, until
// at most ratesKept entries are left. Otherwise a client that invents subjects could evict
// other clients' entries, or cause a search with each request.
const (
	ratesMax  = 100_000
	ratesKept = ratesMax / 4 * 3
)

// Buckets count rates over all replicas. Take takes one from each bucket if every bucket
// has one left, otherwise none. It returns how long each bucket needs to have one, by the
// clock of the buckets' store. After an error the result is unknown. Buckets may be lost at
// any time, which fills them.
type Buckets interface {
	Take(ctx context.Context, of []rate.Bucket) ([]time.Duration, error)
}

// rates counts requests in this process. Zero is ready for use.
type rates struct {
	mu   sync.Mutex
	full map[who]time.Time // when each has its full allowance again
}

// who is the subject of a rate: all clients, one client, or one subject of a client.
type who struct {
	kind            safeguard.ScopeKind
	client, subject string
}

// limited is a rate and its subject.
type limited struct {
	who
	rate safeguard.Rate
}

// limitsOf returns the rates that apply to a request, always in the same order.
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

// rated counts one request for all its rates, or refuses it ([Later]) and counts it for
// none. It counts here and in the replicas' buckets, if there are any. If these are
// unreachable, it counts here alone.
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
		g.Log.Debug("Redis is unavailable: this replica counts rates by itself", "err", err)
	case waits != nil:
		g.rates.giveBack(limits)
		return refusal(limits, waits)
	}
	return nil
}

// refusal returns the refusal of the rate with the longest wait.
func refusal(limits []limited, waits []time.Duration) error {
	i := 0
	for n, wait := range waits {
		if wait > waits[i] {
			i = n
		}
	}
	l := limits[i]
	return &Later{
		Why:  ErrRate.Because("the %s may send %d requests per second, with a burst of %d", name(l.who), l.rate.PerSecond, l.rate.Burst),
		Wait: waits[i], Name: string(l.kind), Rate: l.rate,
	}
}

// take counts one request for each rate, or for none: then it returns how long each has to
// wait.
func (r *rates) take(now time.Time, limits []limited) (waits []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	after := map[who]time.Time{}
	for i, l := range limits {
		window := l.rate.Window()
		// A lowered rate or a clock that was set back must not lock anyone out.
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

// giveBack takes back a request that was refused after all.
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

// forget drops entries when there are too many.
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

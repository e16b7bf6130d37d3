package rest

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// Rate is how many requests a client may send: PerSecond on average, Burst at once. A request
// counts one, a batch counts its items. PerSecond 0 means no limit.
type Rate struct {
	PerSecond int // at most a million
	Burst     int
}

// interval is the time in which one request is refilled.
func (r Rate) interval() time.Duration { return time.Second / time.Duration(r.PerSecond) }

// window is the time in which an exhausted burst is refilled.
func (r Rate) window() time.Duration { return r.interval() * time.Duration(r.Burst) }

// left returns the units of a bucket that is full after the time missing.
func (r Rate) left(missing time.Duration) int { return max(int((r.window()-missing)/r.interval()), 0) }

// beyond returns the units, rounded up, that such a bucket lacks beyond an empty one.
func (r Rate) beyond(missing time.Duration) int {
	return int(max(missing-r.window()+r.interval()-1, 0) / r.interval())
}

// A client is the payer of requests: a key, or an address.
type client struct {
	key     access.KeyID
	address netip.Addr
	lookUps bool // the bucket of its look-ups: see [payer.lookUps]
}

// limiter holds a token bucket per client, in bounded memory. It evicts the client that was
// unused for longest, which amounts to filling that client's bucket. It is safe for concurrent
// use.
type limiter struct {
	seed   maphash.Seed
	shards [limiterShards]limiterShard
}

const limiterShards = 32

// limiterShard has the buckets of some clients, ordered by last use.
type limiterShard struct {
	mu      sync.Mutex
	room    int
	buckets map[client]*bucket
	order   bucket // a ring: next is the most recently used, previous is evicted first
}

// bucket has the time at which a client's bucket is full again: the time until then measures the
// missing units (the generic cell rate algorithm). overdrawn is the number of units, rounded up, that
// are missing beyond an empty bucket: large answers are charged after the fact. Beside it are the units that the client's
// streams have cost, and the units that were paid from the bucket. Unpaid units stay when the bucket is
// empty and when streams close.
type bucket struct {
	client         client
	full           time.Time
	overdrawn      int
	owed, paid     uint64
	previous, next *bucket
}

// newLimiter returns a limiter that remembers about clients clients at most.
func newLimiter(clients int) *limiter {
	l := &limiter{seed: maphash.MakeSeed()}
	for i := range l.shards {
		s := &l.shards[i]
		s.room, s.buckets = max(clients/limiterShards, 1), map[client]*bucket{}
		s.order.previous, s.order.next = &s.order, &s.order
	}
	return l
}

// quota is the client's quota after a request.
type quota struct {
	left int           // requests that may follow at once
	full time.Duration // time until the bucket is full
	wait time.Duration // time until the refused request may be retried; 0 if it was granted
}

// take charges n to a client, if its bucket holds n.
func (l *limiter) take(now time.Time, c client, r Rate, n int) quota {
	s := l.shard(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bucket(c).take(now, r, n)
}

// overdraw charges n to a client, even if its bucket holds less. The client's next requests wait for
// the difference.
func (l *limiter) overdraw(now time.Time, c client, r Rate, n int) quota {
	s := l.shard(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bucket(c)
	missing := b.missing(now, r) + time.Duration(n)*r.interval()
	b.full = now.Add(missing)
	b.overdrawn = r.beyond(missing)
	return quota{left: r.left(missing), full: missing}
}

// owe adds n to the cost of a client's streams, and returns the sum.
func (l *limiter) owe(c client, n int) uint64 {
	s := l.shard(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bucket(c)
	b.owed += uint64(n)
	return b.owed
}

// settle pays the cost of a client's streams, up to the sum due that [limiter.owe] has
// returned. Parts of at most a burst are paid whole or not at all. It returns how long it is
// until the next part can be paid; 0 when all is paid.
func (l *limiter) settle(now time.Time, c client, r Rate, due uint64) time.Duration {
	s := l.shard(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bucket(c)
	for due = min(due, b.owed); b.paid < due; { // less is owed when the bucket was forgotten meanwhile
		n := min(due-b.paid, uint64(r.Burst))
		if q := b.take(now, r, int(n)); q.wait > 0 {
			return q.wait
		}
		b.paid += n
	}
	return 0
}

func (l *limiter) shard(c client) *limiterShard {
	return &l.shards[maphash.Comparable(l.seed, c)%limiterShards]
}

// take charges n, if the bucket has n. The shard's lock is held.
func (b *bucket) take(now time.Time, r Rate, n int) quota {
	missing := b.missing(now, r)
	after := missing + time.Duration(n)*r.interval()
	if window := r.window(); after > window {
		return quota{left: r.left(missing), full: missing, wait: after - window}
	}
	b.full = now.Add(after)
	return quota{left: r.left(after), full: after}
}

// missing returns the time until the bucket is full, and forgets an overdraft that was paid since.
func (b *bucket) missing(now time.Time, r Rate) time.Duration {
	// A clock that was set back, or a rate that was lowered, must not lock the client out.
	if full := now.Add(r.window() + time.Duration(b.overdrawn)*r.interval()); b.full.After(full) {
		b.full = full
	}
	missing := max(b.full.Sub(now), 0)
	b.overdrawn = r.beyond(missing)
	return missing
}

// bucket finds a client's bucket and marks it as used, or creates a full one.
func (s *limiterShard) bucket(c client) *bucket {
	b := s.buckets[c]
	switch {
	case b != nil:
		b.unlink()
	case len(s.buckets) < s.room:
		b = &bucket{client: c}
		s.buckets[c] = b
	default:
		b = s.order.previous
		b.unlink()
		delete(s.buckets, b.client)
		*b = bucket{client: c}
		s.buckets[c] = b
	}
	b.previous, b.next = &s.order, s.order.next
	b.previous.next, b.next.previous = b, b
	return b
}

func (b *bucket) unlink() { b.previous.next, b.next.previous = b.next, b.previous }

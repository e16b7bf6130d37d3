package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// The queue is worked off by the server's clock, and callers say by their own when a
// row is due. Both are set by somebody, and may be wrong by hours, from one moment
// to the next. So the times of repeats are carried from one clock to the other, and
// what only a clock that was set back can have left behind counts as due, or as
// lapsed. First attempts keep the time at which the chain will take them: Advance has
// them go when the chain's clock says so, whatever the server's says. Those that are due
// as soon as they are there are looked through when the clock has been set back.

const (
	// skewMin is how far apart two clocks are that are not taken for one: as far as
	// the shortest pause is long. By a clock that is behind by more than a pause,
	// what is to be repeated would be due at once, again and again.
	skewMin = 250 * time.Millisecond

	// leaseSlack is how much longer than ours another replica's term may be: a lease
	// that runs for longer yet was given before the clock was set back.
	leaseSlack = time.Minute

	// clockSlack is how far ahead of the clock something may say that it was told its
	// time: clocks are put right by less every day, and nobody is to be hurried for that.
	clockSlack = time.Minute
)

// beyond is how far away a repeat is that was told its time before the clock was set
// back.
func (s *Work) beyond() time.Duration {
	if s.pause == 0 {
		return 100 * 365 * 24 * time.Hour
	}
	return s.pause + leaseSlack
}

// skewed is how far ahead of ours the server's clock is that showed this time
// between two looks at ours.
func skewed(server, before, after time.Time) time.Duration {
	skew := server.Sub(before.Add(after.Sub(before) / 2))
	if skew.Abs() < max(skewMin, after.Sub(before)) {
		return 0
	}
	return skew
}

// skew is what was last known of the server's clock.
type skew struct{ ahead atomic.Int64 }

func (s *skew) note(server, before, after time.Time) {
	s.ahead.Store(int64(skewed(server, before, after)))
}

// stored is a time of ours as the queue keeps it.
func (s *skew) stored(t time.Time) time.Time {
	return storedTime(t.Add(time.Duration(s.ahead.Load())))
}

// shown is the latest time that the server's clock has shown.
type shown struct {
	mu     sync.Mutex
	latest time.Time
	again  time.Time // when to look once more; zero: not
}

// settled is how long after a clock was set back what was being written then is there.
const settled = 5 * time.Second

// setBack reports whether rows may be due by a clock that was set back: at the first look,
// when the clock shows less than it did, and once more when that has settled.
func (s *shown) setBack(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	back := s.latest.IsZero() || now.Before(s.latest.Add(-clockSlack))
	once := !s.again.IsZero() && !now.Before(s.again)
	switch {
	case back:
		s.latest, s.again = now, now.Add(settled)
	case once:
		s.again = time.Time{}
	}
	if now.After(s.latest) {
		s.latest = now
	}
	return back || once
}

// hurry makes due what has never been attempted, is eligible, and was told a time that
// lies ahead: by a clock that has been set back since.
func (s *Work) hurry(ctx context.Context) (int, error) {
	return s.chunks(ctx, `UPDATE work.queue q SET next_at = clock_timestamp() WHERE (q.chain, q.hash) IN (
		SELECT chain, hash FROM work.queue WHERE phase = 'open' AND attempts = 0
		  AND next_at > clock_timestamp() + $1::interval
		  AND eligible_at <= (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint - 9223372036854775807 - 1)
		LIMIT $2 FOR UPDATE SKIP LOCKED)`, s.beyond())
}

package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Due times in the queue are compared with the server's clock, but callers compute them by
// their own. Either clock may be wrong by hours, and may be set at any moment. So due times of
// repeats are converted from the caller's clock to the server's. A time that only a clock set
// back can explain counts as due, or as lapsed.
//
// First attempts keep the time from which the chain accepts them. Advance makes them due by the
// chain's clock, independent of the server's. First attempts that are eligible at once are
// checked after the clock was set back.

const (
	// skewMin is the smallest difference between two clocks that is corrected: the shortest
	// pause. If a clock is behind by more than a pause, repeats would be due at once, again and
	// again.
	skewMin = 250 * time.Millisecond

	// leaseSlack is how much longer than ours another replica's lease may be. A lease that runs
	// even longer was given before the clock was set back.
	leaseSlack = time.Minute

	// clockSlack is how far in the future a recorded time may lie before the clock counts as
	// set back: daily corrections are smaller, and must not make anything due.
	clockSlack = time.Minute
)

// beyond is the distance of a due time that was stored before the clock was set back.
func (s *Work) beyond() time.Duration {
	if s.pause == 0 {
		return 100 * 365 * 24 * time.Hour
	}
	return s.pause + leaseSlack
}

// skewed is how far the server's clock is ahead of ours, given its time between two readings of
// ours.
func skewed(server, before, after time.Time) time.Duration {
	skew := server.Sub(before.Add(after.Sub(before) / 2))
	if skew.Abs() < max(skewMin, after.Sub(before)) {
		return 0
	}
	return skew
}

// skew is the last known difference of the server's clock.
type skew struct{ ahead atomic.Int64 }

func (s *skew) note(server, before, after time.Time) {
	s.ahead.Store(int64(skewed(server, before, after)))
}

// stored converts a time of our clock to the queue's time.
func (s *skew) stored(t time.Time) time.Time {
	return storedTime(t.Add(time.Duration(s.ahead.Load())))
}

// shown is the latest time shown by the server's clock.
type shown struct {
	mu     sync.Mutex
	latest time.Time
	again  time.Time // time of one more check; zero: none
}

// settled is the time after a clock was set back until writes of that moment have committed.
const settled = 5 * time.Second

// setBack reports whether rows may carry times from before the clock was set back: at the first
// call, when the clock is behind its latest time, and once more after settled.
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

// hurry makes eligible rows without attempts due if their due time lies too far ahead: it was
// stored before the clock was set back.
func (s *Work) hurry(ctx context.Context) (int, error) {
	turns, err := s.chunks(ctx, hurryTurns, s.beyond())
	if err != nil {
		return turns, err
	}
	rows, err := s.chunks(ctx, `UPDATE work.queue q SET next_at = clock_timestamp() WHERE (q.chain, q.hash) IN (
		SELECT chain, hash FROM work.queue WHERE phase = 'open' AND attempts = 0
		  AND next_at > clock_timestamp() + $1::interval
		  AND eligible_at <= (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint - 9223372036854775807 - 1)
		LIMIT $2 FOR UPDATE SKIP LOCKED)`, s.beyond())
	return turns + rows, err
}

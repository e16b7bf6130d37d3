package rest

import (
	"context"
	"errors"
	"sync"
	"time"
)

// checkFor is how long after a check began other callers get its result.
const checkFor = 250 * time.Millisecond

// lastCheck lets concurrent callers share one check of a dependency: at most one runs, and at most
// one begins in each checkFor.
type lastCheck[T any] struct {
	mu   sync.Mutex
	last *oneCheck[T]
}

// oneCheck is one check. value and err may be read once done is closed.
type oneCheck[T any] struct {
	began time.Time
	done  chan struct{}
	value T
	err   error
}

// get returns the result of the last check, or makes a check if the last one began too long before
// now. The check is made by the caller, for healthTimeout at most, and goes on if the caller's
// request ends.
func (s *lastCheck[T]) get(ctx context.Context, now time.Time, ask func(context.Context) (T, error)) (T, error) {
	check, first := s.join(now)
	if first {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
		defer cancel()
		defer close(check.done)
		check.value, check.err = ask(bounded)
		return check.value, check.err
	}
	select {
	case <-check.done:
		return check.value, check.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// join returns the check whose result the caller gets. first means that the caller must make it.
func (s *lastCheck[T]) join(now time.Time) (check *oneCheck[T], first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil {
		select {
		case <-s.last.done:
			if age := now.Sub(s.last.began); age >= 0 && age < checkFor {
				return s.last, false
			}
		default:
			return s.last, false
		}
	}
	s.last = &oneCheck[T]{began: now, done: make(chan struct{}), err: errors.New("the check did not end")}
	return s.last, true
}

// dependencies are the shared checks behind /health and /readyz.
type dependencies struct {
	database, redis lastCheck[struct{}]
	readers         lastCheck[[]Reader]
}

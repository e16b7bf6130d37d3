package event

import (
	"errors"
	"fmt"
)

// Stuck is a reader's error about one event that it cannot get past: what comes
// before the event has nothing to do with it and can be done all the same.
type Stuck struct {
	At  Position // the event's
	Err error
}

func (s *Stuck) Error() string { return fmt.Sprintf("position %d: %v", s.At, s.Err) }
func (s *Stuck) Unwrap() error { return s.Err }

// Before is the part of a batch that lies before the event that an error of its
// handling is about. ok is false when the error is about no event, or about the
// batch's first: then there is nothing to do before. It ends at the position of an
// event: a number in between is no position, and some stores cannot go on from it.
func (b Batch) Before(err error) (_ Batch, ok bool) {
	var stuck *Stuck
	if !errors.As(err, &stuck) {
		return Batch{}, false
	}
	for i, e := range b.Events {
		if e.Position == stuck.At && i > 0 {
			return Batch{Events: b.Events[:i], Next: b.Events[i-1].Position}, true
		}
	}
	return Batch{}, false
}

package eventlog

import (
	"errors"
	"fmt"
)

// Stuck is a reader's error about one event that it cannot handle. Events before it are
// unaffected and can still be handled.
type Stuck struct {
	At  Position // position of the event
	Err error
}

func (s *Stuck) Error() string { return fmt.Sprintf("position %d: %v", s.At, s.Err) }
func (s *Stuck) Unwrap() error { return s.Err }

// Before returns the part of a batch before the event that a [Stuck] error is about. ok is false
// if the error is about no event, or about the batch's first. The part ends at an event's
// position: some stores cannot continue from a number in between.
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

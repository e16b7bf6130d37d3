package commands

import "context"

// Turn lets one caller at a time do something that takes long: unlike a mutex, a caller
// waits for no longer than it may.
type Turn struct{ taken chan struct{} }

// NewTurn returns a turn that nobody has.
func NewTurn() Turn { return Turn{make(chan struct{}, 1)} }

// Take waits for the turn. The caller ends it. The error is the context's.
func (t Turn) Take(ctx context.Context) (end func(), err error) {
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

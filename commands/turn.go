package commands

import "context"

// Turn lets one caller at a time do slow work. Unlike with a mutex, a caller stops waiting
// when its context ends.
type Turn struct{ taken chan struct{} }

// NewTurn returns a free turn.
func NewTurn() Turn { return Turn{make(chan struct{}, 1)} }

// Take waits for the turn. The caller frees it with end. The error is the context's.
func (t Turn) Take(ctx context.Context) (end func(), err error) {
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

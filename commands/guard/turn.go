package guard

import (
	"context"
	"sync"
)

// turn is a lock that is held while a store is asked. So it is not waited for any longer
// than the waiter has time: what a slow store does to one request, it does to no other.
type turn struct {
	once sync.Once
	free chan struct{}
}

// take waits for the turn. Its error is the context's; else give has to follow.
func (t *turn) take(ctx context.Context) error {
	t.once.Do(func() { t.free = make(chan struct{}, 1) })
	select {
	case t.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *turn) give() { <-t.free }

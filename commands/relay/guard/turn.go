package guard

import (
	"context"
	"sync"
)

// turn is a lock that is held during store calls. A waiter gives up when its context ends,
// so a slow store delays no other request beyond its own deadline.
type turn struct {
	once sync.Once
	free chan struct{}
}

// take waits for the turn. Its error is the context's; otherwise give must follow.
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

package commands

import (
	"context"
	"time"
)

// Pause waits for d. The error is the context's, when that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

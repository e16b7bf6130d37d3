// Package pause waits for a time or the end of a context. It imports nothing of ours.
package pause

import (
	"context"
	"time"
)

// For waits for d. It returns the context's error if ctx ends first.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

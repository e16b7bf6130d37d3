//go:build !linux

package pause

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends.
func For(ctx context.Context, d time.Duration) { byTimer(ctx, d) }

// Package pause waits for exact times.
package pause

import (
	"context"
	"time"
)

// byTimer waits for d, or until ctx ends.
func byTimer(ctx context.Context, d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
}

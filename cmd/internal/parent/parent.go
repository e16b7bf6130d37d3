// Package parent lets a program end with the one that started it.
package parent

import (
	"context"
	"os"
	"time"
)

const interval = 500 * time.Millisecond // between two looks whether the parent still lives

// Watch cancels when the process with the id of parent is our parent no more: make and
// go run die of SIGTERM without passing it on. The channel is closed when the watching
// has ended.
func Watch(ctx context.Context, cancel context.CancelFunc, parent int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if os.Getppid() != parent {
					cancel()
					return
				}
			}
		}
	}()
	return done
}

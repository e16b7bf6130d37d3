// Package parent ends a program together with the program that started it.
package parent

import (
	"context"
	"os"
	"time"
)

const interval = 500 * time.Millisecond // interval between checks of the parent

// Watch cancels when the process parent is no longer our parent: make and go run die of SIGTERM
// without passing it on. The channel is closed when the watch has ended.
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

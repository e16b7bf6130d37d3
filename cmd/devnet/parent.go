package main

import (
	"context"
	"os"
	"strings"
	"time"
)

const parentInterval = 500 * time.Millisecond // between two looks whether the parent still lives

// endWithGoRun cancels when the go command that runs us is gone: told to end
// otherwise than by Ctrl-C, go run does not pass it on. The channel is closed when
// the watching has ended, which is at once if we were started in another way.
func endWithGoRun(ctx context.Context, cancel context.CancelFunc) <-chan struct{} {
	done := make(chan struct{})
	program, err := os.Executable()
	if err != nil || !strings.Contains(program, "go-build") { // where go run puts programs
		close(done)
		return done
	}
	parent := os.Getppid()
	go func() {
		defer close(done)
		tick := time.NewTicker(parentInterval)
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

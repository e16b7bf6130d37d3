package main

import (
	"context"
	"os"
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/internal/parent"
)

// endWithGoRun cancels when the go command that runs us is gone: told to end
// otherwise than by Ctrl-C, go run does not pass it on. The channel is closed when
// the watching has ended, which is at once if we were started in another way.
func endWithGoRun(ctx context.Context, cancel context.CancelFunc) <-chan struct{} {
	program, err := os.Executable()
	if err != nil || !strings.Contains(program, "go-build") { // where go run puts programs
		done := make(chan struct{})
		close(done)
		return done
	}
	return parent.Watch(ctx, cancel, os.Getppid())
}

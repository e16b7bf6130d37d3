package main

import (
	"context"
	"os"
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/internal/parent"
)

// endWithGoRun cancels when the go command that runs us has ended: go run does not pass on
// signals other than Ctrl-C's. The channel is closed when the watch has ended, at once if we
// were started in another way.
func endWithGoRun(ctx context.Context, cancel context.CancelFunc) <-chan struct{} {
	program, err := os.Executable()
	if err != nil || !strings.Contains(program, "go-build") { // go run's build folder
		done := make(chan struct{})
		close(done)
		return done
	}
	return parent.Watch(ctx, cancel, os.Getppid())
}

//go:build crash

package app

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// crashVar is "point" or "point:n": the process dies at the n-th pass of a named
// point, as kill -9 kills it. Only a build for tests has this.
const crashVar = "WATCHTOWER_CRASH_AT"

// Crash is what a build for tests passes at each named point, if it is to die at one.
func Crash() func(point string) {
	at, times, _ := strings.Cut(os.Getenv(crashVar), ":")
	if at == "" {
		return nil
	}
	var passes atomic.Int64
	if n, err := strconv.ParseInt(times, 10, 64); err == nil {
		passes.Store(1 - n)
	}
	return func(point string) {
		if point == at && passes.Add(1) == 1 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // does not return to tell
			select {}
		}
	}
}

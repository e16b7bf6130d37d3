//go:build crash

package app

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// The variables have the form "point" or "point:n". At the n-th pass of the named point the
// process dies as with kill -9, or stops until it receives SIGCONT. Only a build for tests has
// them.
const (
	crashVar = "WATCHTOWER_CRASH_AT"
	stopVar  = "WATCHTOWER_CRASH_STOP"
)

// Crash returns the function that a test build calls at each named point. It is nil unless the
// process is to die or to stop at a point.
func Crash() func(point string) {
	dies, stops := at(crashVar), at(stopVar)
	if dies == nil && stops == nil {
		return nil
	}
	return func(point string) {
		if dies != nil && dies(point) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // does not return
			select {}
		}
		if stops != nil && stops(point) {
			standStill()
		}
	}
}

// standStill returns after SIGCONT. Waiting for the signal is needed: another thread may receive
// SIGSTOP, and the sending thread goes on meanwhile. On a busy machine it passed the point and
// did the work that it was to be kept from.
func standStill() {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	defer signal.Stop(goOn)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-goOn
}

// at returns a function that reports, for each pass of a point, whether it is the pass that the
// variable names; nil when the variable is empty.
func at(variable string) func(point string) bool {
	name, times, _ := strings.Cut(os.Getenv(variable), ":")
	if name == "" {
		return nil
	}
	var passes atomic.Int64
	if n, err := strconv.ParseInt(times, 10, 64); err == nil {
		passes.Store(1 - n)
	}
	return func(point string) bool { return point == name && passes.Add(1) == 1 }
}

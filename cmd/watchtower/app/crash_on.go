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

// The variables are "point" or "point:n": at the n-th pass of a named point the process
// dies, as kill -9 kills it, or stands still, until somebody sends it SIGCONT. Only a
// build for tests has them.
const (
	crashVar = "WATCHTOWER_CRASH_AT"
	stopVar  = "WATCHTOWER_CRASH_STOP"
)

// Crash is what a build for tests passes at each named point, if it is to die or to stand
// still at one.
func Crash() func(point string) {
	dies, stops := at(crashVar), at(stopVar)
	if dies == nil && stops == nil {
		return nil
	}
	return func(point string) {
		if dies != nil && dies(point) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // does not return to tell
			select {}
		}
		if stops != nil && stops(point) {
			standStill()
		}
	}
}

// standStill returns when somebody has sent SIGCONT. The signal that stops a process may
// be taken by another of its threads, and the one that sent it goes on meanwhile: on a busy
// machine it came past the point and did what it was to be kept from.
func standStill() {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	defer signal.Stop(goOn)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-goOn
}

// at says of each pass of a point whether it is the one that a variable names; nil when
// it names none.
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

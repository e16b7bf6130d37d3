package simulation

import (
	"runtime"
	"runtime/debug"
)

// alone prepares this process for a world: one processor, and garbage collection only when the
// world calls for it. If the runtime has no watchdog either, as in the program built by
// ./worlds, only the world decides which goroutine runs next.
func alone() (undo func()) {
	percent, processors := debug.SetGCPercent(-1), runtime.GOMAXPROCS(1)
	return func() {
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(processors)
	}
}

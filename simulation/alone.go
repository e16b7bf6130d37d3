package simulation

import (
	"runtime"
	"runtime/debug"
)

// alone prepares this process for a world: one processor, and no collector but when
// the world calls it. Where the runtime has no watchdog either, as in what the program
// ./worlds builds, nothing but the world decides who runs next.
func alone() (undo func()) {
	percent, processors := debug.SetGCPercent(-1), runtime.GOMAXPROCS(1)
	return func() {
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(processors)
	}
}

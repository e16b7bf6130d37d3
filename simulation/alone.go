package simulation

import (
	"runtime"
	"runtime/debug"
)

// SeatVar names the variable that says which of the machine's processors a world lives
// on: without, the one that it is born on, and below zero any, at any time.
const SeatVar = "WATCHTOWER_WORLD_SEAT"

// alone prepares this process for a world: one processor, and no collector but when
// the world calls it, so that nothing but the world decides who runs next.
func alone() (undo func()) {
	excite := calm()
	percent, processors := debug.SetGCPercent(-1), runtime.GOMAXPROCS(1)
	return func() {
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(processors)
		excite()
	}
}

package simulation

import (
	"runtime"
	"runtime/debug"
)

// alone prepares this process for a world: one processor, and no collector but when
// the world calls it, so that nothing but the world decides who runs next. undo undoes
// what can be undone.
func alone() (undo func()) {
	calm()
	percent, processors := debug.SetGCPercent(-1), runtime.GOMAXPROCS(1)
	return func() {
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(processors)
	}
}

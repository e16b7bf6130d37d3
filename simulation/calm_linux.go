package simulation

import (
	"os"
	"slices"
	"strconv"
	"syscall"
	"unsafe"
)

// calm lets the runtime's watchdog (sysmon) run only when the machine has nothing else
// to do. It takes a goroutine off its processor that has had it for 10 ms, and counts
// the time in which the machine ran somebody else; on a busy machine that would change
// the order in which goroutines run, and with it the world, as often as not. It is the
// first thread that a program of Go starts, and so has the lowest number but one.
//
// Without it a world is still lived through as it should be; it may only differ from
// what another run of it was.
func calm() {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	threads := make([]int, 0, len(entries))
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			threads = append(threads, n)
		}
	}
	if slices.Sort(threads); len(threads) < 2 {
		return
	}
	const schedIdle = 5 // SCHED_IDLE, sched(7)
	var priority int32
	//nolint:errcheck,gosec // see above
	syscall.Syscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(threads[1]), schedIdle, uintptr(unsafe.Pointer(&priority)))
}

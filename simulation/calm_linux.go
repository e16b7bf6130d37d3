package simulation

import (
	"os"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calm keeps the runtime's watchdog (sysmon) from changing a world. It takes a goroutine
// off its processor that seems to have had it for 10 ms, and counts the time in which
// the machine ran somebody else: on a busy machine that would change the order in which
// goroutines run, and with it the world, as often as not. So all threads get the same
// processor, and the watchdog only what the others leave of it: whenever it looks, what
// it looks at has moved on. It is the first thread that a program of Go starts, and so
// has the lowest number but one.
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
	if seat, ok := seat(); ok {
		for _, n := range threads {
			unix.SchedSetaffinity(n, &seat) //nolint:errcheck // see above; new threads are where their makers are
		}
	}
	const schedIdle = 5 // SCHED_IDLE, sched(7)
	var priority int32
	//nolint:errcheck,gosec // see above
	unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(threads[1]), schedIdle, uintptr(unsafe.Pointer(&priority)))
}

// seat is the processor to live on, among those that this process may use.
func seat() (one unix.CPUSet, ok bool) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
		return one, false
	}
	var numbers []int
	for n := range len(all) * int(unsafe.Sizeof(all[0])) * 8 {
		if all.IsSet(n) {
			numbers = append(numbers, n)
		}
	}
	n, err := strconv.Atoi(os.Getenv(SeatVar))
	if err == nil && n < 0 {
		return one, false
	}
	if err != nil {
		var now uint32
		//nolint:gosec // getcpu(2)
		if _, _, failed := unix.Syscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&now)), 0, 0); failed != 0 {
			return one, false
		}
		if n = slices.Index(numbers, int(now)); n < 0 {
			return one, false
		}
	}
	one.Set(numbers[n%len(numbers)])
	return one, true
}

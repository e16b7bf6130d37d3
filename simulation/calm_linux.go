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
// what another run of it was. undo lets all threads run anywhere again: what this process
// starts later runs where the thread does that starts it.
func calm() (undo func()) {
	all := threads()
	if len(all) < 2 {
		return func() {}
	}
	const schedOther, schedIdle = 0, 5 // sched(7)
	watchdog := all[1]
	schedule(watchdog, schedIdle)
	var before unix.CPUSet
	one, ok := seat(&before)
	if ok {
		sit(&one)
	}
	return func() {
		schedule(watchdog, schedOther)
		if ok {
			sit(&before)
		}
	}
}

// threads are the numbers of this process's threads, in order.
func threads() (all []int) {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// sit has all threads run on these processors only. New ones run where their makers do.
func sit(on *unix.CPUSet) {
	for _, n := range threads() {
		unix.SchedSetaffinity(n, on) //nolint:errcheck // see calm
	}
}

func schedule(thread int, policy uintptr) {
	var priority int32
	//nolint:errcheck,gosec // see calm
	unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(thread), policy, uintptr(unsafe.Pointer(&priority)))
}

// seat is the processor to live on, among all that this process may use.
func seat(all *unix.CPUSet) (one unix.CPUSet, ok bool) {
	if err := unix.SchedGetaffinity(0, all); err != nil || all.Count() < 2 {
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

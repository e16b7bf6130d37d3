package pause

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// For waits for d, or until ctx ends. A timer of Go ends up to a millisecond late on an idle
// machine: the runtime waits for whole milliseconds from the time when it became idle. So the end of
// such a wait shows the fraction of the millisecond in which it began. For waits with a timer of the
// kernel: timerfd_create(2). It holds no thread.
func For(ctx context.Context, d time.Duration) {
	timer, err := armed(d)
	if err != nil { // no descriptor is free
		byTimer(ctx, d)
		return
	}
	defer timer.Close()                                       //nolint:errcheck // nothing was written
	ended := context.AfterFunc(ctx, func() { expire(timer) }) // ends the read
	defer ended()
	var expirations [8]byte
	_, _ = timer.Read(expirations[:]) // an error means that ctx has ended
}

// armed returns a timer of the kernel. A read of it waits until d has passed.
func armed(d time.Duration) (*os.File, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	timer := os.NewFile(uintptr(fd), "timer")
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))} // 0 would disarm it
	if err = unix.TimerfdSettime(fd, 0, &at, nil); err == nil {
		err = timer.SetReadDeadline(time.Time{}) // fails if reads do not wait
	}
	if err != nil {
		timer.Close() //nolint:errcheck,gosec // nothing was written
		return nil, err
	}
	return timer, nil
}

func expire(timer *os.File) { _ = timer.SetReadDeadline(time.Unix(1, 0)) } // fails if it is closed

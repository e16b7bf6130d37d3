package notifier_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// late is a queue whose first non-empty answer arrives when the lease has almost run out.
type late struct {
	notifier.Queue
	once bool
}

func (l *late) Lease(ctx context.Context, c notice.Claim) ([]notice.Sending, time.Duration, error) {
	due, until, err := l.Queue.Lease(ctx, c)
	if len(due) > 0 && !l.once {
		l.once = true
		time.Sleep(c.TTL * 19 / 20)
	}
	return due, until, err
}

// An attempt that is cut short by a slow queue proves nothing about the endpoint. It is
// repeated when the lease has lapsed, and no failure is counted.
func TestLateLease(t *testing.T) {
	inWorld(t, func(q notifier.Queue) notifier.Queue { return &late{Queue: q} }, func(t *testing.T, w *world) {
		k := key(1, 1, 1)
		w.set(1, timeout)
		w.enqueue(k)
		time.Sleep(58 * time.Second)
		synctest.Wait()
		n := w.want(k, notice.Delivering)
		e, _, err := w.queue.Endpoint(t.Context(), k.Endpoint)
		check(t, err)
		if n.Attempts != 0 || e.Failures != 0 {
			t.Errorf("%d attempts and %d failures are counted, and none was made in time", n.Attempts, e.Failures)
		}
		w.set(1, taken)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := w.want(k, notice.Settled); n.Attempts != 1 {
			t.Errorf("it was delivered after %d attempts", n.Attempts)
		}
	})
}

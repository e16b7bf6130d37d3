package retention

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// crowd is requests of which so many are to be forgotten.
type crowd struct {
	left  int
	calls int
	fails bool
}

func (c *crowd) Forget(_ context.Context, most, limit int) (int, error) {
	c.calls++
	if c.fails {
		return 0, errors.New("away")
	}
	n := min(c.left, limit)
	c.left -= n
	return n, nil
}

// What has piled up is removed at once, a little at a time; then there are pauses.
func TestRequestsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		rows := &crowd{left: 2*forgetAtOnce + 1}
		ended := make(chan error, 1)
		go func() { ended <- Requests{Rows: rows, Most: 7, Pause: time.Minute}.Run(ctx) }()
		synctest.Wait()
		if rows.left != 0 || rows.calls != 3 {
			t.Errorf("%d left after %d calls", rows.left, rows.calls)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if rows.calls != 4 {
			t.Errorf("%d calls after a pause", rows.calls)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		rows.fails = true
		if err := (Requests{Rows: rows, Pause: time.Minute}).Run(t.Context()); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("trouble: %v", err)
		}
	})
}

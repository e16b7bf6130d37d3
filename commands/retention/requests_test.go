package retention

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/request"
)

// crowd is a store of requests with a number of them to forget.
type crowd struct {
	mu    sync.Mutex
	left  int
	calls int
	fails bool
}

func (c *crowd) Forget(_ context.Context, b request.Bounds) (f request.Forgotten, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.fails {
		return f, errors.New("away")
	}
	f.Removed = min(c.left, b.Limit)
	c.left -= f.Removed
	return f, nil
}

func (c *crowd) seen() (left, calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left, c.calls
}

// A backlog is removed without pauses, in batches; then there are pauses.
func TestRequestsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		rows := &crowd{left: 2*forgetAtOnce + 1}
		ended := make(chan error, 1)
		go func() { ended <- Requests{Rows: rows, Most: 7, Pause: time.Minute}.Run(ctx) }()
		synctest.Wait()
		if left, calls := rows.seen(); left != 0 || calls != 3 {
			t.Errorf("%d left after %d calls", left, calls)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if _, calls := rows.seen(); calls != 4 {
			t.Errorf("%d calls after a pause", calls)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := (Requests{Rows: &crowd{fails: true}, Pause: time.Minute}).Run(t.Context()); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("trouble: %v", err)
		}
	})
}

package rest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Any number of requests to /readyz and /health cost four checks of the database a second, one at a
// time. A request that ends does not end the check that others wait for.
func TestChecksAreShared(t *testing.T) {
	var asked, running atomic.Int64
	check := func(ctx context.Context) error {
		asked.Add(1)
		if running.Add(1) > 1 {
			t.Error("two checks at once")
		}
		defer running.Add(-1)
		select {
		case <-time.After(10 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var s lastCheck[struct{}]
		get := func(ctx context.Context) error {
			_, err := s.get(ctx, time.Now(), func(ctx context.Context) (struct{}, error) { return struct{}{}, check(ctx) })
			return err
		}
		gone, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = get(gone) })
		synctest.Wait()
		all.Go(func() {
			if err := get(t.Context()); err != nil {
				t.Errorf("the check ended with another request: %v", err)
			}
		})
		synctest.Wait()
		leave()
		for range 400 {
			all.Go(func() {
				for began := time.Now(); time.Since(began) < 990*time.Millisecond; time.Sleep(5 * time.Millisecond) { // of a fake clock
					if err := get(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if n := asked.Load(); n < 3 || n > 4 {
			t.Errorf("%d checks in a second, want 4", n)
		}
	})

	asked.Store(0)
	clock, readers := testTime, 0
	s := newStack(t, func(c *Config) {
		c.Now = func() time.Time { return clock }
		c.Health.Database = check
		c.Health.Readers = func(context.Context) ([]Reader, error) { readers++; return nil, nil }
	})
	for _, step := range []struct {
		after time.Duration
		want  int64
	}{{0, 1}, {checkFor - 1, 1}, {1, 2}, {-time.Hour, 3}} {
		clock = clock.Add(step.after)
		for _, path := range []string{"/readyz", "/health", "/readyz", "/health"} {
			if res := s.get(path); res.status != http.StatusOK {
				t.Errorf("%s: %v", path, res)
			}
		}
		if n := asked.Load(); n != step.want || int64(readers) != step.want {
			t.Errorf("after %s: %d checks and %d reads of the readers, want %d", step.after, n, readers, step.want)
		}
	}
}

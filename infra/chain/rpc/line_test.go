package rpc

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A broadcast waits for at most the time of one call beside those kept for reads, however many
// reads, trials and clients' calls wait, and however large they are.
func TestNothingGoesBeforeBroadcasts(t *testing.T) {
	for name, test := range map[string]struct {
		rate  float64
		use   purpose
		n     int
		crowd int
	}{
		"clients":             {5, onBehalf, 1, 32},
		"clients, quicker":    {25, onBehalf, 1, 32},
		"reads":               {25, read, 1, 128},
		"more reads":          {25, read, 1, 256},
		"trials":              {25, trying, 1, 128},
		"batches":             {25, read, 20, 32},
		"more than the burst": {5, read, 100, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMeter("a", Budget{Rate: test.rate, Concurrency: 1000}, time.Now())
				ctx, stop := context.WithCancel(t.Context())
				var crowd sync.WaitGroup
				made := 0
				var mu sync.Mutex
				for range test.crowd {
					crowd.Go(func() {
						for ctx.Err() == nil {
							leave, err := m.enter(ctx, time.Now, waiter{use: test.use, n: test.n}, 8*time.Second)
							if err != nil {
								time.Sleep(50 * time.Millisecond)
								continue
							}
							mu.Lock()
							made += test.n
							mu.Unlock()
							leave()
						}
					})
				}
				began, most := time.Now(), time.Duration(float64(time.Second)/(1-keptShare)/test.rate)+time.Microsecond // rounding
				for range 100 {
					time.Sleep(500 * time.Millisecond)
					asked := time.Now()
					leave, err := m.enter(t.Context(), time.Now, waiter{use: broadcast, n: 1}, 4*time.Second)
					if took := time.Since(asked); err != nil || took > most {
						t.Fatalf("a broadcast after %s, %v", took, err)
					}
					leave()
				}
				took := time.Since(began)
				stop()
				crowd.Wait()
				all := float64(made + 100)
				if bound := test.rate*took.Seconds() + max(test.rate, float64(test.n)); all > bound || all < 0.8*test.rate*took.Seconds() {
					t.Errorf("%g calls in %s at %g per second", all, took, test.rate)
				}
			})
		})
	}
}

// Reads go before clients' calls in any order of arrival. A waiter that gives up delays no
// other.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter("a", Budget{Rate: 1, Burst: 1}, time.Now())
		if _, err := m.take(time.Now(), &waiter{use: broadcast, n: 1}, 0); err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 4)
		enter := func(name string, ctx context.Context, use purpose, want error) {
			go func() {
				leave, err := m.enter(ctx, time.Now, waiter{use: use, n: 1}, time.Minute)
				if !errors.Is(err, want) {
					t.Errorf("%s: %v", name, err)
				}
				if err == nil {
					leave()
				}
				got <- name
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		enter("client", t.Context(), onBehalf, nil)
		enter("gone", ctx, read, context.Canceled)
		enter("trial", t.Context(), trying, nil)
		enter("read", t.Context(), read, nil)
		cancel()
		began := time.Now()
		for i, want := range []string{"gone", "read", "trial", "client"} {
			if name := <-got; name != want || time.Since(began) != time.Duration(i)*time.Second {
				t.Errorf("%s after %s, want %s", name, time.Since(began), want)
			}
		}
		if _, err := m.enter(t.Context(), time.Now, waiter{use: read, n: 1}, time.Millisecond); !errors.As(err, new(*Spent)) {
			t.Errorf("without patience: %v", err)
		}
	})
}

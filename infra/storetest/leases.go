package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The shortest and the longest term of a lease that settings allow. A lease that runs much
// longer may count as given before the store's clock was set back.
const (
	shortestTerm = 500 * time.Millisecond
	longestTerm  = time.Minute
)

// Leases is the contract of leases. A call that has returned without an error has no later
// effect, however often it was tried. Each store tests by itself how it handles an early try
// that arrives late.
func Leases(t *testing.T, open func(t *testing.T) Opened[LeaseRows]) {
	t.Run("one holder at a time", func(t *testing.T) {
		p := open(t).Port
		acquire(t, p, "lane", "a", time.Minute, true)
		acquire(t, p, "lane", "b", time.Minute, false)
		acquire(t, p, "lane", "a", time.Minute, true)
		acquire(t, p, "lane", "b", time.Minute, false)
		acquire(t, p, "another lane", "b", time.Minute, true)
	})
	t.Run("release", func(t *testing.T) {
		ctx, p := soon(t), open(t).Port
		check(t, p.Release(ctx, "lane", "a"))
		acquire(t, p, "lane", "a", time.Minute, true)
		check(t, p.Release(ctx, "lane", "b")) // it is not the holder
		acquire(t, p, "lane", "b", time.Minute, false)
		for i := range 6 {
			holder := string(rune('a' + i%2))
			check(t, p.Release(ctx, "lane", holder))
			check(t, p.Release(ctx, "lane", holder))
			acquire(t, p, "lane", string(rune('a'+(i+1)%2)), time.Minute, true)
		}
	})
	t.Run("lapse", func(t *testing.T) {
		o := open(t)
		p, clock := o.Port, o.Clock.orReal()
		const ttl = 400 * time.Millisecond
		acquire(t, p, "lane", "a", ttl, true)
		clock.Elapse(ttl / 2)
		acquire(t, p, "lane", "a", ttl, true) // renewed for a whole term
		clock.Elapse(ttl * 3 / 4)
		acquire(t, p, "lane", "b", ttl, false)
		clock.Elapse(ttl / 2)
		acquire(t, p, "lane", "b", time.Minute, true)
		acquire(t, p, "lane", "a", ttl, false)
		check(t, p.Release(soon(t), "lane", "a")) // it is no longer the holder
		acquire(t, p, "lane", "c", ttl, false)
	})
	t.Run("another's term is longer than ours", func(t *testing.T) {
		p := open(t).Port
		acquire(t, p, "lane", "a", longestTerm, true)
		acquire(t, p, "lane", "b", shortestTerm, false)
		acquire(t, p, "lane", "a", longestTerm, true)
		acquire(t, p, "lane", "b", shortestTerm, false)
	})
	t.Run("race", func(t *testing.T) {
		ctx, p := soon(t), open(t).Port
		for round := range 20 {
			var held atomic.Int32
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					ok, err := p.Acquire(ctx, "lane", fmt.Sprintf("%d-%d", round, i), time.Minute)
					if err != nil {
						t.Error(err)
					}
					if ok {
						held.Add(1)
						if err := p.Release(ctx, "other", "x"); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if held.Load() != 1 {
				t.Fatalf("%d holders", held.Load())
			}
			for i := range 8 {
				check(t, p.Release(ctx, "lane", fmt.Sprintf("%d-%d", round, i)))
			}
		}
	})
	t.Run("histories are linearizable", func(t *testing.T) {
		o := open(t)
		LinearLeases(t, o.Port, o.Clock, SmallCrowd(1))
	})
	t.Run("data outlives the process", func(t *testing.T) {
		o := open(t)
		acquire(t, o.Port, "lane", "a", time.Hour, true)
		p := o.Reopen()
		acquire(t, p, "lane", "b", time.Hour, false)
		acquire(t, p, "lane", "a", time.Hour, true)
	})
}

func acquire(t *testing.T, p LeaseRows, name, holder string, ttl time.Duration, want bool) {
	t.Helper()
	held, err := p.Acquire(soon(t), name, holder, ttl)
	check(t, err)
	if held != want {
		t.Fatalf("%s asked for %s: held %v", holder, name, held)
	}
}

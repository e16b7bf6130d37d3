package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Leases is the contract of rights that lapse.
func Leases(t *testing.T, open func(t *testing.T) Opened[LeaseRows]) {
	t.Run("one holder at a time", func(t *testing.T) {
		p := open(t).Port
		first := acquire(t, p, "lane", "a", time.Minute, true)
		if first == 0 {
			t.Error("the first token is 0")
		}
		acquire(t, p, "lane", "b", time.Minute, false)
		if again := acquire(t, p, "lane", "a", time.Minute, true); again != first {
			t.Errorf("renewed, the token went from %d to %d", first, again)
		}
		acquire(t, p, "another lane", "b", time.Minute, true)
	})
	t.Run("release", func(t *testing.T) {
		ctx, p := soon(t), open(t).Port
		check(t, p.Release(ctx, "lane", "a"))
		token := acquire(t, p, "lane", "a", time.Minute, true)
		check(t, p.Release(ctx, "lane", "b")) // not the holder
		acquire(t, p, "lane", "b", time.Minute, false)
		for i := range 6 {
			holder := string(rune('a' + i%2))
			check(t, p.Release(ctx, "lane", holder))
			check(t, p.Release(ctx, "lane", holder))
			next := acquire(t, p, "lane", string(rune('a'+(i+1)%2)), time.Minute, true)
			if next <= token {
				t.Fatalf("a new holder's token is %d, the one before had %d", next, token)
			}
			token = next
		}
	})
	t.Run("lapse", func(t *testing.T) {
		o := open(t)
		p, clock := o.Port, o.Clock.orReal()
		const ttl = 400 * time.Millisecond
		first := acquire(t, p, "lane", "a", ttl, true)
		clock.Elapse(ttl / 2)
		acquire(t, p, "lane", "a", ttl, true) // renewed for a whole term
		clock.Elapse(ttl * 3 / 4)
		acquire(t, p, "lane", "b", ttl, false)
		clock.Elapse(ttl / 2)
		second := acquire(t, p, "lane", "b", time.Minute, true)
		if second <= first {
			t.Errorf("after a lapse the token is %d, was %d", second, first)
		}
		acquire(t, p, "lane", "a", ttl, false)
		check(t, p.Release(soon(t), "lane", "a"))
		if token := acquire(t, p, "lane", "b", ttl, true); token != second {
			t.Errorf("a former holder's release changed the token from %d to %d", second, token)
		}
	})
	t.Run("race", func(t *testing.T) {
		ctx, p := soon(t), open(t).Port
		var last uint64
		for round := range 20 {
			var held atomic.Int32
			var token atomic.Uint64
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					n, ok, err := p.Acquire(ctx, "lane", fmt.Sprintf("%d-%d", round, i), time.Minute)
					if err != nil {
						t.Error(err)
					}
					if ok {
						held.Add(1)
						token.Store(n)
						if err := p.Release(ctx, "other", "x"); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if held.Load() != 1 || token.Load() <= last {
				t.Fatalf("%d holders, token %d after %d", held.Load(), token.Load(), last)
			}
			last = token.Load()
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
		first := acquire(t, o.Port, "lane", "a", time.Hour, true)
		p := o.Reopen()
		acquire(t, p, "lane", "b", time.Hour, false)
		if again := acquire(t, p, "lane", "a", time.Hour, true); again != first {
			t.Errorf("the token went from %d to %d", first, again)
		}
	})
}

func acquire(t *testing.T, p LeaseRows, name, holder string, ttl time.Duration, want bool) (token uint64) {
	t.Helper()
	token, held, err := p.Acquire(soon(t), name, holder, ttl)
	check(t, err)
	if held != want {
		t.Fatalf("%s asked for %s: held %v", holder, name, held)
	}
	return token
}

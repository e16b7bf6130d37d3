package postgres_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/relay/rate"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
)

// Replicas that share buckets get as much together as a single one would. A refusal by one
// bucket takes nothing from the others. A refused caller learns how long to wait.
func TestRates(t *testing.T) {
	op := open(t, postgres.Options{})
	replicas := []*postgres.Rates{op.db.Rates(), op.again().db.Rates()}
	of := func(client string, burst int) rate.Bucket {
		return rate.BucketOf(time.Second, time.Duration(burst)*time.Second, client)
	}
	everybody := of("everybody", 100)
	began := time.Now()
	var granted atomic.Int64
	var asking sync.WaitGroup
	for i := range 40 {
		asking.Go(func() {
			waits, err := replicas[i%2].Take(soon(t), []rate.Bucket{of("ann", 10), everybody})
			switch {
			case err != nil:
				t.Error(err)
			case waits == nil:
				granted.Add(1)
			case len(waits) != 2 || waits[0] <= 0 || waits[0] > time.Second || waits[1] != 0:
				t.Errorf("wait %s", waits)
			}
		})
	}
	asking.Wait()
	most := 10 + int64(time.Since(began)/time.Second) + 1 // tokens refilled meanwhile
	if n := granted.Load(); n < 10 || n > most {
		t.Errorf("%d are granted, not 10 to %d", n, most)
	}
	// Ann's refused calls took nothing from the shared bucket.
	left := int64(0)
	for ; ; left++ {
		waits, err := replicas[0].Take(soon(t), []rate.Bucket{everybody})
		must(t, err)
		if waits != nil {
			break
		}
	}
	if least := 100 - granted.Load(); left < least {
		t.Errorf("%d are left for everybody, not %d", left, least)
	}
	// A lowered rate blocks no client for longer than its own window.
	waits, err := replicas[1].Take(soon(t), []rate.Bucket{of("ann", 2)})
	must(t, err)
	if len(waits) != 1 || waits[0] > time.Second {
		t.Errorf("by a lower rate: %s", waits)
	}
	waits, err = replicas[1].Take(soon(t), []rate.Bucket{of("bob", 1)})
	if err != nil || waits != nil {
		t.Errorf("another client: %s, %v", waits, err)
	}
	execute(t, admin(t, op.url), `UPDATE work.rates SET full_at = clock_timestamp() - interval '1 s' WHERE bucket = $1`, everybody.ID[:])
	if n, err := replicas[0].Forget(soon(t), 10); err != nil || n < 1 || n > 2 { // bob's may be full again
		t.Errorf("%d are forgotten, %v", n, err)
	}
	ended, cancel := context.WithCancel(soon(t))
	cancel()
	if _, err := replicas[0].Take(ended, []rate.Bucket{of("cy", 1)}); err == nil {
		t.Error("nobody waits, and it is taken")
	}
}

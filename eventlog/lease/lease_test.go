package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog/lease"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

// clockLeases are leases in memory, on the clock of a synctest bubble, whose holders can be
// cut off. They pass the contract of the real ones.
type clockLeases struct {
	mu     sync.Mutex
	leases map[string]granted
	cut    map[string]bool // holders whose calls fail
}

type granted struct {
	holder string
	until  time.Time
}

func newLeases() *clockLeases {
	return &clockLeases{leases: map[string]granted{}, cut: map[string]bool{}}
}

func (c *clockLeases) Acquire(_ context.Context, name, holder string, ttl time.Duration) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, now := c.leases[name], time.Now()
	switch {
	case c.cut[holder]:
		return false, errors.New("cut off")
	case l.holder != holder && l.until.After(now):
		return false, nil
	}
	c.leases[name] = granted{holder, now.Add(ttl)}
	return true, nil
}

func (c *clockLeases) Release(_ context.Context, name, holder string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut[holder] {
		return errors.New("cut off")
	}
	if l := c.leases[name]; l.holder == holder {
		l.until = time.Time{}
		c.leases[name] = l
	}
	return nil
}

func (c *clockLeases) sever(holder string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut[holder] = true
}

func TestClockLeasesKeepTheContract(t *testing.T) {
	storetest.Leases(t, func(t *testing.T) storetest.Opened[storetest.LeaseRows] {
		leases := newLeases()
		return storetest.Opened[storetest.LeaseRows]{Port: leases, Reopen: func() storetest.LeaseRows { return leases }}
	})
}

func owner(leases port.Leases, holder string) lease.Owner {
	return lease.Owner{Leases: leases, Holder: holder, TTL: 3 * time.Second, Renew: time.Second, Log: slog.New(slog.DiscardHandler)}
}

// term is one stretch of owned work.
type term struct {
	holder     string
	began, end time.Time
}

// record returns work that runs until its context ends and notes when it ran.
func record(holder string, terms chan<- term) func(context.Context) error {
	return func(ctx context.Context) error {
		began := time.Now()
		<-ctx.Done()
		terms <- term{holder, began, time.Now()}
		return ctx.Err()
	}
}

func TestOneOwnerAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases, terms := newLeases(), make(chan term, 10)
		first, stopFirst := context.WithCancel(t.Context())
		second, stopSecond := context.WithCancel(t.Context())
		var owners sync.WaitGroup
		owners.Go(func() { owner(leases, "a").Own(first, "work", record("a", terms)) })
		synctest.Wait()
		owners.Go(func() { owner(leases, "b").Own(second, "work", record("b", terms)) })
		<-time.After(10 * time.Second)
		stopped := time.Now()
		stopFirst()
		a := <-terms
		<-time.After(10 * time.Second)
		stopSecond()
		b := <-terms
		owners.Wait()
		if a.holder != "a" || b.holder != "b" {
			t.Fatalf("terms %v, %v", a, b)
		}
		if b.began.Before(a.end) {
			t.Error("two owners at once")
		}
		if wait := b.began.Sub(stopped); wait > time.Second {
			t.Errorf("a lease given up was taken over after %v, want at most one renewal pause", wait)
		}
	})
}

// A holder that can no longer renew stops working before its lease lapses, and another
// takes over within five seconds.
func TestCutOffOwnerStopsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases, terms := newLeases(), make(chan term, 10)
		ctx, stop := context.WithCancel(t.Context())
		var owners sync.WaitGroup
		owners.Go(func() { owner(leases, "a").Own(ctx, "work", record("a", terms)) })
		synctest.Wait()
		owners.Go(func() { owner(leases, "b").Own(ctx, "work", record("b", terms)) })
		<-time.After(5500 * time.Millisecond)
		severed := time.Now()
		leases.sever("a")
		a := <-terms
		<-time.After(10 * time.Second)
		stop()
		b := <-terms
		owners.Wait()
		if !b.began.After(a.end) {
			t.Errorf("b began at %v, a ended at %v", b.began, a.end)
		}
		if lag := b.began.Sub(severed); lag > 5*time.Second {
			t.Errorf("taken over after %v", lag)
		}
	})
}

// Failed work starts again after a pause.
func TestFailedWorkBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		runs := 0
		owner(newLeases(), "a").Own(ctx, "work", func(context.Context) error {
			runs++
			return errors.New("store away")
		})
		if runs < 5 || runs > 11 {
			t.Errorf("%d runs in ten seconds with a pause of one", runs)
		}
	})
}

// Lease outcomes are reported: won, missed, failed and lost.
func TestLeasesAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases, terms := newLeases(), make(chan term, 10)
		var owners sync.WaitGroup
		var told [2][]lease.News
		ctx, stop := context.WithCancel(t.Context())
		for i, holder := range []string{"a", "b"} {
			o := owner(leases, holder)
			o.Told = func(name string, what lease.News) {
				if news := told[i]; name == "work" && (len(news) == 0 || news[len(news)-1] != what) {
					told[i] = append(news, what)
				}
			}
			owners.Go(func() { o.Own(ctx, "work", record(holder, terms)) })
			synctest.Wait()
		}
		<-time.After(2 * time.Second)
		leases.sever("a")
		<-time.After(10 * time.Second)
		stop()
		owners.Wait()
		want := [2][]lease.News{
			{lease.Won, lease.Lost, lease.Failed},
			{lease.Missed, lease.Won},
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Error(diff)
		}
	})
}

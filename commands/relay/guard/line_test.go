package guard_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// sluice lets one append through for each value of open.
type sluice struct {
	port.Store
	open chan struct{}
}

func (s sluice) Append(ctx context.Context, to eventlog.Stream, at eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error) {
	select {
	case <-s.open:
		return s.Store.Append(ctx, to, at, events...)
	case <-ctx.Done():
		return eventlog.Appended{}, ctx.Err()
	}
}

// reserving asks for the budget of n intents of a client in a lane.
func reserving(ctx context.Context, g *guard.Guard, client string, id chain.Sequence, n int) error {
	requests, charges := make([]*intent.Request, n), make([]budget.Charge, n)
	for i := range n {
		r := request(i)
		r.Client, r.Key = client, fmt.Sprint(id.Key, i)
		requests[i], charges[i] = &r, charge(r, 1)
	}
	_, err := g.Allow(ctx, id, 1, requests, charges)
	return err
}

// One client's lanes reserve budget by the hundred. A lane of another client, and a lane that all
// clients share, have their reservations after two appends. The hundreds of lanes share appends.
func TestHundredsOfLanesReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register(w.replica(), alice)
		w.limit(w.replica(), budget.Account{Kind: budget.EachClient}, 1_000_000)
		open := make(chan struct{})
		g := w.replica(func(c *guard.Config) { c.Budgets.Store = sluice{c.Budgets.Store, open} })
		var all, others sync.WaitGroup
		var answered, othersAnswered atomic.Int64
		ask := func(group *sync.WaitGroup, count *atomic.Int64, client string, key byte, n int) {
			group.Go(func() {
				id := laneOf(alice)
				id.Key[31] = key
				if err := reserving(t.Context(), g, client, id, n); err != nil {
					t.Error(err)
				}
				count.Add(1)
			})
			synctest.Wait()
		}
		for lane := range 120 {
			ask(&all, &answered, "mallory", byte(lane+1), 50)
		}
		ask(&others, &othersAnswered, "ann", 200, 50)
		ask(&others, &othersAnswered, "mallory", 0, 1)
		for range 2 {
			open <- struct{}{}
			synctest.Wait()
		}
		if n := othersAnswered.Load(); n != 2 {
			t.Errorf("%d of 2 others are answered after two appends, beside %d of 120 lanes", n, answered.Load())
		}
		appends := 2
		for answered.Load()+othersAnswered.Load() < 122 {
			open <- struct{}{}
			synctest.Wait()
			appends++
		}
		if appends > 16 { // five hundred purposes in each
			t.Errorf("%d appends for 120 lanes with 50 purposes each", appends)
		}
		all.Wait()
		others.Wait()
		w.judge()
	})
}

// A caller whose time is over while it works for others leaves them to the next.
func TestWorksForOthersNoLongerThanItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register(w.replica(), alice)
		w.limit(w.replica(), budget.Account{Kind: budget.EachClient}, 1_000_000)
		open := make(chan struct{})
		g := w.replica(func(c *guard.Config) { c.Budgets.Store = sluice{c.Budgets.Store, open} })
		first := make(chan error, 1)
		go func() { first <- reserving(t.Context(), g, "ann", laneOf(alice), 1) }()
		synctest.Wait() // it waits for its append
		ctx, stop := context.WithCancel(t.Context())
		second, third := make(chan error, 1), make(chan error, 1)
		lane := func(key byte) chain.Sequence {
			id := laneOf(alice)
			id.Key[31] = key
			return id
		}
		go func() { second <- reserving(ctx, g, "bob", lane(1), 1) }()
		synctest.Wait()
		go func() { third <- reserving(t.Context(), g, "carol", lane(2), 1) }()
		synctest.Wait()
		open <- struct{}{}
		if err := <-first; err != nil {
			t.Error(err)
		}
		synctest.Wait() // the second appends for itself and the third
		stop()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("who was stopped: %v", err)
		}
		synctest.Wait()
		open <- struct{}{}
		if err := <-third; err != nil {
			t.Errorf("who waited behind it: %v", err)
		}
		w.judge()
	})
}

package retention

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// crowd is a store of requests with a number of expired ones. Each removal takes some time.
type crowd struct {
	took  time.Duration
	fails bool

	mu    sync.Mutex
	left  int
	calls []removal
}

// removal is a call, by when it began.
type removal struct {
	at    time.Time
	limit int
}

func (c *crowd) Usage(context.Context, int) (u request.Usage, err error) { return u, nil }

func (c *crowd) Forget(_ context.Context, o request.Oldest) (removed int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, removal{time.Now(), o.Limit})
	if c.fails {
		return 0, errors.New("away")
	}
	time.Sleep(c.took) // of a fake clock
	removed = min(c.left, o.Limit)
	c.left -= removed
	return removed, nil
}

func (c *crowd) seen() (left int, calls []removal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left, c.calls
}

// A backlog is removed in batches, each after a rest as long as the batch before it took; then
// there are pauses.
func TestRequestsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		rows := &crowd{left: 1000, took: 30 * time.Millisecond}
		ended := make(chan error, 1)
		go func() { ended <- Requests{Rows: rows, Most: 7, Pause: time.Minute}.Run(ctx) }()
		<-time.After(time.Second)
		left, calls := rows.seen()
		if left != 0 || len(calls) != 11 {
			t.Errorf("%d left after %d calls", left, len(calls))
		}
		for i, call := range calls {
			if call.limit > 100 || i > 0 && call.at.Sub(calls[i-1].at) < 2*rows.took {
				t.Errorf("call %d is for %d, %s after the one before", i, call.limit, call.at.Sub(calls[max(i-1, 0)].at))
			}
		}
		<-time.After(time.Minute)
		if _, calls := rows.seen(); len(calls) != 12 {
			t.Errorf("%d calls after a pause", len(calls))
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

// A sweep forgets expired requests, each client's oldest beyond its share, and only then the
// oldest of all.
func TestSweepOfRequests(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	db, err := embedded.Open("", embedded.Options{Now: func() time.Time { return now }})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	rows := db.Requests()
	id := byte(0)
	claim := func(client string, keep time.Duration, n int) {
		for range n {
			id++
			c := request.Claim{ID: eventlog.ID{id}, Name: request.Name{id}, Client: client, Hold: time.Second, Keep: keep}
			_, _, err := rows.Claim(t.Context(), c)
			check(t, err)
			now = now.Add(time.Second)
		}
	}
	claim("ann", time.Second, 3)
	claim("ann", time.Hour, 1)
	claim("flood", time.Hour, 9)
	claim("bob", time.Hour, 4)
	r := Requests{Rows: rows, Most: 100, Share: 5}
	for i, want := range []request.Usage{
		{All: 10, Largest: 5}, // of 1, 9 and 4
		{All: 8, Largest: 4},  // ann's and one more of flood's are the oldest beyond 8
	} {
		_, err := r.sweep(t.Context())
		check(t, err)
		got, err := rows.Usage(t.Context(), r.Share)
		check(t, err)
		r.Most = 8
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("sweep %d: %s", i, diff)
		}
	}
	r.Share = 3
	largest, err := r.sweep(t.Context())
	check(t, err)
	if u, err := rows.Usage(t.Context(), 0); err != nil || largest != 3 || u.All != 6 {
		t.Errorf("%d of the largest, %+v, %v", largest, u, err)
	}
}

package intake_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// quotaDesk is a desk with a quota, and a queue whose counts the test sets.
type quotaDesk struct {
	*intake.Desk
	t      *testing.T
	now    time.Time
	queued map[string]int
	counts int
	used   int
}

func newQuotaDesk(t *testing.T, limit int) *quotaDesk {
	d := &quotaDesk{Desk: newDesk(t), t: t, now: epoch, queued: map[string]int{}}
	d.Desk.Now = func() time.Time { return d.now }
	d.Quota = &intake.Quota{Limit: limit, Name: "quota.intents", Thing: "open intent", Things: "open intents", Now: d.Desk.Now, Used: func(used int) { d.used = used }, Count: func(_ context.Context, client string, most int) (int, error) {
		d.counts++
		return min(d.queued[client], most), nil
	}}
	return d
}

func (d *quotaDesk) ask(client string, n int) intake.Answer {
	return d.Create(d.t.Context(), []intent.Request{asked(func(r *intent.Request) { r.Client, r.Key, r.Deadline = client, fmt.Sprint("order-", n), 0 })}, eventlog.Meta{})[0]
}

// A client that floods the queue of intents is refused beyond its quota. No other client is
// affected, and repeated requests for accepted intents are still answered.
func TestFloodOfIntentsIsRefused(t *testing.T) {
	d := newQuotaDesk(t, 5)
	d.queued["flood"] = 3
	for n := range 2 {
		if a := d.ask("flood", n); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	a := d.ask("flood", 2)
	if !errors.Is(a.Err, access.ErrQuotaExceeded) || !strings.Contains(a.Err.Error(), "has 5 open intents") || !strings.Contains(a.Err.Error(), "quota.intents allows 5") {
		t.Errorf("past the quota: %v", a.Err)
	}
	for n := range 2 {
		if a := d.ask("flood", n); a.Err != nil || !a.Known {
			t.Errorf("the same request again: %v, known %t", a.Err, a.Known)
		}
	}
	if a := d.ask("victim", 0); a.Err != nil {
		t.Errorf("another client's: %v", a.Err)
	}
	if d.used != 5 || d.counts != 2 {
		t.Errorf("used %d, counted %d times", d.used, d.counts)
	}
	// Accepted intents reach the queue, and some of them end.
	d.queued["flood"], d.now = 5, d.now.Add(5*time.Second)
	if a := d.ask("flood", 2); !errors.Is(a.Err, access.ErrQuotaExceeded) {
		t.Errorf("when the queue has them: %v", a.Err)
	}
	d.queued["flood"], d.now = 4, d.now.Add(5*time.Second)
	if a := d.ask("flood", 2); a.Err != nil {
		t.Errorf("when one has come out: %v", a.Err)
	}
}

// Repeated and refused requests use no quota.
func TestNothingUsesNothingUp(t *testing.T) {
	d := newQuotaDesk(t, 2)
	for range 5 {
		if a := d.ask("shop", 0); a.Err != nil {
			t.Fatal(a.Err)
		}
		other := asked(func(r *intent.Request) { r.Client, r.Key, r.Deadline, r.Subject = "shop", "order-0", 0, "x" })
		if a := d.Create(t.Context(), []intent.Request{other}, eventlog.Meta{})[0]; !errors.Is(a.Err, intent.ErrDiffers) {
			t.Errorf("another request under the key: %v", a.Err)
		}
	}
	if a := d.ask("shop", 1); a.Err != nil {
		t.Error(a.Err)
	}
}

// A queue that is fed a second late does not weaken the quota, and a queue that cannot be
// counted refuses no client permanently.
func TestQuotaOfALateQueue(t *testing.T) {
	d := newQuotaDesk(t, 10)
	accepted := 0
	for n := range 30 {
		if a := d.ask("flood", n); a.Err == nil {
			accepted++
		}
		d.now = d.now.Add(60 * time.Millisecond)
		d.queued["flood"] = max(accepted-16, 0) // as of a second ago
	}
	if accepted != 10 {
		t.Errorf("%d are accepted", accepted)
	}
	d.now = d.now.Add(time.Minute)
	d.Quota.Count = func(context.Context, string, int) (int, error) { return 0, errors.New("no database") }
	if a := d.ask("shop", 1); a.Err == nil || errors.Is(a.Err, access.ErrQuotaExceeded) {
		t.Errorf("without a database: %v", a.Err)
	}
}

// While the store does not answer a client's first request, its other requests wait no
// longer than their own deadlines.
func TestWaitsForTheCountOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := make(chan struct{}, 2)
		q := &intake.Quota{Limit: 1, Name: "quota.intents", Now: time.Now, Count: func(ctx context.Context, _ string, _ int) (int, error) {
			asks <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		}}
		take := func(within time.Duration) chan error {
			done := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				_, err := q.Take(ctx, "client", 1)
				done <- err
			}()
			return done
		}
		began, first := time.Now(), take(time.Hour)
		<-asks
		if err := <-take(time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// A client whose webhook deliveries pile up is refused intents with webhooks, beyond its quota. Its
// intents without webhooks, and repeated requests, are still accepted, and no other client is
// affected. A refused intent uses up nothing.
func TestFloodOfDeliveriesIsRefused(t *testing.T) {
	d := newQuotaDesk(t, 5)
	queued, used := 10, 0
	d.Deliveries = &intake.Quota{
		Limit: 15, Name: "quota.deliveries", Thing: "queued webhook delivery", Things: "queued webhook deliveries", Now: d.Desk.Now,
		Used: func(most int) { used = most },
		Count: func(_ context.Context, client string, most int) (int, error) {
			if client != "flood" {
				return 0, nil
			}
			return min(queued, most), nil
		},
	}
	ask := func(client string, n, webhooks int) error {
		return d.Create(t.Context(), []intent.Request{asked(func(r *intent.Request) {
			r.Client, r.Key, r.Deadline, r.Webhooks = client, fmt.Sprint("order-", n), 0, nil
			for i := range webhooks {
				r.Webhooks = append(r.Webhooks, intent.Webhook{URL: fmt.Sprint("https://hooks.example.com/", i)})
			}
		})}, eventlog.Meta{})[0].Err
	}
	refused := func(err error, why string) {
		t.Helper()
		if !errors.Is(err, access.ErrQuotaExceeded) || !strings.Contains(err.Error(), why) {
			t.Errorf("past the quota: %v", err)
		}
	}
	if err := ask("flood", 1, 3); err != nil {
		t.Error(err)
	}
	refused(ask("flood", 2, 3), "has 13 queued webhook deliveries, and the intent has 3 more, quota.deliveries allows 15")
	for n, webhooks := range map[int]int{1: 3, 3: 2, 4: 0} {
		if err := ask("flood", n, webhooks); err != nil {
			t.Errorf("%d webhooks: %v", webhooks, err)
		}
	}
	refused(ask("flood", 5, 1), "has 15 queued webhook deliveries, quota.deliveries allows 15")
	if err := ask("victim", 1, 8); err != nil {
		t.Errorf("another client's: %v", err)
	}
	if used != 15 {
		t.Errorf("%d are used", used)
	}
	queued, d.now = 0, d.now.Add(5*time.Second)
	d.queued["flood"] = 5
	for n := range 20 {
		refused(ask("flood", 10+n, 1), "quota.intents")
	}
	if back, err := d.Deliveries.Take(t.Context(), "flood", 15); err != nil {
		t.Errorf("refused intents have used it up: %v", err)
	} else {
		back()
	}
}

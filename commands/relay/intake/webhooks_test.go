package intake_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// A client that keeps requesting new webhooks is refused beyond its quota. Its requests
// with webhooks in use, or without any, are accepted, and no other client is affected.
func TestFloodOfWebhooksIsRefused(t *testing.T) {
	d, now := newDesk(t), epoch
	inUse, looks, most := map[string][]notice.EndpointID{}, 0, 0
	d.WebhookQuota = &intake.WebhookQuota{
		Limit: 3, Now: func() time.Time { return now }, Used: func(used int) { most = used },
		InUse: func(_ context.Context, client string, _ int) ([]notice.EndpointID, error) {
			looks++
			return inUse[client], nil
		},
	}
	n := 0
	ask := func(client string, urls ...int) error {
		n++
		r := asked(func(r *intent.Request) {
			r.Client, r.Key, r.Deadline, r.Webhooks = client, fmt.Sprint("order-", n), 0, nil
			for _, u := range urls {
				r.Webhooks = append(r.Webhooks, intent.Webhook{URL: fmt.Sprint("https://hooks.example.com/", u)})
			}
		})
		return d.Create(t.Context(), []intent.Request{r}, eventlog.Meta{})[0].Err
	}
	for _, urls := range [][]int{{1}, {2, 1}, {3}, {3, 2, 1}, {}} {
		if err := ask("flood", urls...); err != nil {
			t.Errorf("%v: %v", urls, err)
		}
	}
	if err := ask("flood", 1, 4); !errors.Is(err, access.ErrQuotaExceeded) || !strings.Contains(err.Error(), "uses 3 webhooks") || !strings.Contains(err.Error(), "quota.webhooks allows 3") {
		t.Errorf("past the quota: %v", err)
	}
	if err := ask("victim", 4); err != nil {
		t.Errorf("another client's: %v", err)
	}
	if looks != 2 || most != 3 {
		t.Errorf("looked %d times, used %d", looks, most)
	}
	// The store has two of them in use.
	inUse["flood"] = []notice.EndpointID{{1}, {2}}
	now = now.Add(5 * time.Second)
	if err := ask("flood", 7); err != nil {
		t.Error(err)
	}
	if err := ask("flood", 8); !errors.Is(err, access.ErrQuotaExceeded) {
		t.Errorf("past what the store has: %v", err)
	}
}

// lookups is a guard that counts its calls.
type lookups int

func (*lookups) Check(string) error { return nil }

func (l *lookups) CheckNow(context.Context, string) error {
	*l++
	return nil
}

// For a client over its quota or its rate no name is resolved. A check alone uses no quota.
func TestNoNameIsLookedUpForWhoIsRefused(t *testing.T) {
	d := newDesk(t)
	var looked lookups
	d.Webhooks = intake.NewWebhookChecks(&looked)
	d.WebhookQuota = &intake.WebhookQuota{
		Limit: 1, Now: func() time.Time { return epoch },
		InUse: func(context.Context, string, int) ([]notice.EndpointID, error) { return nil, nil },
	}
	var refuse error
	d.Allow = func(context.Context, intent.Request) error { return refuse }
	n := 0
	ask := func(url string) error {
		n++
		r := asked(func(r *intent.Request) {
			r.Key, r.Deadline, r.Webhooks = fmt.Sprint("order-", n), 0, []intent.Webhook{{URL: url}}
		})
		return d.Create(t.Context(), []intent.Request{r}, eventlog.Meta{})[0].Err
	}
	refuse = intent.ErrSettled
	if err := ask("https://hooks.example.com/1"); !errors.Is(err, refuse) || looked != 0 {
		t.Errorf("not allowed: %v, %d look-ups", err, looked)
	}
	refuse = nil
	if err := ask("https://hooks.example.com/2"); err != nil || looked != 1 {
		t.Errorf("%v, %d look-ups", err, looked)
	}
	if err := ask("https://hooks.example.com/3"); !errors.Is(err, access.ErrQuotaExceeded) || looked != 1 {
		t.Errorf("past the quota: %v, %d look-ups", err, looked)
	}
}

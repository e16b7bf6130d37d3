package watchtower

import (
	"context"
	"iter"
	"net/url"
	"strconv"
)

// Webhooks are calls about a client's webhooks: their state, their secrets, and the deliveries
// that were given up.
type Webhooks struct{ caller caller }

// Webhook is the state of a webhook.
type Webhook struct {
	ID           string          `json:"id"`
	Origin       string          `json:"origin"`            // of its URL, whose rest may be a secret
	Secrets      []string        `json:"secrets,omitempty"` // only from [Webhooks.Own]; newest first
	Known        bool            `json:"known"`             // at least one delivery was due to it
	Failures     int             `json:"failures"`          // since the last success
	FailingSince int64           `json:"failingSince,omitempty"`
	PausedUntil  int64           `json:"pausedUntil,omitempty"`
	Disabled     string          `json:"disabled,omitempty"` // why nothing is sent: gone, failing or operator
	DisabledAt   int64           `json:"disabledAt,omitempty"`
	Attempts     int64           `json:"attempts"`  // all
	Delivered    int64           `json:"delivered"` // of these, the attempts that delivered an event
	LastAttempt  *WebhookAttempt `json:"lastAttempt,omitempty"`
	Notices      *int            `json:"notices,omitempty"` // number of deliveries that a command concerns
}

// WebhookAttempt is the result of an attempt to deliver an event.
type WebhookAttempt struct {
	At        int64  `json:"at"`
	Delivered bool   `json:"delivered"`
	Cause     string `json:"cause,omitempty"`
	Status    int    `json:"status,omitempty"` // of the webhook's answer
}

// NoticeID names a webhook delivery.
type NoticeID struct {
	Intent   string `json:"intent"`
	Sequence uint64 `json:"sequence"`
}

// DeadNotice is a webhook delivery that was given up.
type DeadNotice struct {
	NoticeID
	Attempts int         `json:"attempts"`
	Cause    string      `json:"cause"`
	Status   int         `json:"status,omitempty"` // of the webhook's answer
	LastAt   int64       `json:"lastAt,omitempty"`
	Event    IntentEvent `json:"event"`
}

// TriedWebhook is the result of a test message.
type TriedWebhook struct {
	ID        string `json:"id"`
	Delivered bool   `json:"delivered"`
	Cause     string `json:"cause,omitempty"`
	Status    int    `json:"status,omitempty"` // of the webhook's answer
}

const webhooksPath = "/v1/webhooks"

func webhookPath(id string) string { return webhooksPath + "/" + url.PathEscape(id) }

// List yields all webhooks that the client may see, by id. An error is the last value that it
// yields.
func (w Webhooks) List(ctx context.Context) iter.Seq2[Webhook, error] {
	return pages(url.Values{"limit": {"200"}}, func(query url.Values) (all []Webhook, next url.Values, err error) {
		var page struct {
			Webhooks []Webhook
			HasMore  bool
		}
		err = w.caller.call(ctx, get(webhooksPath, query), &page)
		if n := len(page.Webhooks); n > 0 && page.HasMore {
			next = with(query, "after", page.Webhooks[n-1].ID)
		}
		return page.Webhooks, next, err
	})
}

// Get returns one webhook, without its secrets.
func (w Webhooks) Get(ctx context.Context, id string) (Webhook, error) {
	var found Webhook
	err := w.caller.call(ctx, get(webhookPath(id), nil), &found)
	return found, err
}

// Own returns the client's webhook of a URL, with the secrets that sign its deliveries. It
// changes nothing.
func (w Webhooks) Own(ctx context.Context, target string) (Webhook, error) {
	var own Webhook
	err := w.caller.posted(ctx, webhooksPath, nil, map[string]string{"url": target}, &own)
	return own, err
}

// Try has the service send one test message to a URL, and returns the result.
func (w Webhooks) Try(ctx context.Context, target string) (TriedWebhook, error) {
	var tried TriedWebhook
	err := w.caller.posted(ctx, webhooksPath+"/try", nil, map[string]string{"url": target}, &tried)
	return tried, err
}

// Dead yields the deliveries that were given up. An error is the last value that it yields.
func (w Webhooks) Dead(ctx context.Context, id string) iter.Seq2[DeadNotice, error] {
	return pages(url.Values{"limit": {"200"}}, func(query url.Values) (dead []DeadNotice, next url.Values, err error) {
		var page struct {
			Notices []DeadNotice
			HasMore bool
		}
		err = w.caller.call(ctx, get(webhookPath(id)+"/dead", query), &page)
		if n := len(page.Notices); n > 0 && page.HasMore {
			last := page.Notices[n-1]
			next = with(with(query, "intent", last.Intent), "sequence", strconv.FormatUint(last.Sequence, 10))
		}
		return page.Notices, next, err
	})
}

// Redeliver sends the named deliveries again; without names, all that were given up.
func (w Webhooks) Redeliver(ctx context.Context, id string, notices ...NoticeID) (Webhook, error) {
	body := struct {
		Notices []NoticeID `json:"notices,omitempty"`
	}{notices}
	return w.command(ctx, id, "redeliver", body)
}

// Enable enables a webhook and clears its failures.
func (w Webhooks) Enable(ctx context.Context, id string) (Webhook, error) {
	return w.command(ctx, id, "enable", nil)
}

// Disable disables a webhook: its deliveries are given up.
func (w Webhooks) Disable(ctx context.Context, id string) (Webhook, error) {
	return w.command(ctx, id, "disable", nil)
}

func (w Webhooks) command(ctx context.Context, id, name string, body any) (Webhook, error) {
	var before Webhook
	err := w.caller.posted(ctx, webhookPath(id)+"/"+name, nil, body, &before)
	return before, err
}

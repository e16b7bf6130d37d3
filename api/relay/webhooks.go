package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Webhooks holds the dependencies for showing and operating clients' webhook endpoints.
type Webhooks struct {
	Rows interface {
		Endpoint(ctx context.Context, id notice.EndpointID) (notice.Endpoint, bool, error)
		Endpoints(ctx context.Context, client *string, after notice.EndpointID, limit int) ([]notice.Endpoint, error)
		Dead(ctx context.Context, endpoint notice.EndpointID, after notice.Key, limit int) ([]notice.Notice, error)
		Count(ctx context.Context, endpoint notice.EndpointID, stage notice.Stage, most int) (int, error)
	}
	Operator notifier.Operator
	// Endpoint returns the id of the endpoint for a client's URL. Secrets are the secrets with
	// which its webhook deliveries are signed, newest first.
	Endpoint func(client, url string) notice.EndpointID
	Secrets  func(id notice.EndpointID) []string
	// Try sends one test delivery without contents. It returns within the time of one attempt.
	Try func(ctx context.Context, id notice.EndpointID, url string) notice.Outcome
}

// ErrInvalidWebhookID refuses a path without a valid endpoint id.
const ErrInvalidWebhookID = eventlog.Refusal("invalid-webhook-id")

func (d *desk) webhookRoutes() []rest.Route {
	on := func(answer func(rest.Request) error) func(rest.Request) error {
		return func(r rest.Request) error {
			if d.Webhooks == nil {
				return rest.ErrNotFound.Because("webhooks are switched off here")
			}
			return answer(r)
		}
	}
	return []rest.Route{
		{Method: http.MethodGet, Path: "/v1/webhooks", Scope: access.Read, Answer: on(d.listWebhooks)},
		{Method: http.MethodPost, Path: "/v1/webhooks", Scope: access.Submit, Answer: on(d.ownWebhook)},
		{Method: http.MethodPost, Path: "/v1/webhooks/try", Scope: access.Submit, Answer: on(d.tryWebhook)},
		{Method: http.MethodGet, Path: "/v1/webhooks/{endpoint}", Scope: access.Read, Answer: on(d.webhook)},
		{Method: http.MethodGet, Path: "/v1/webhooks/{endpoint}/dead", Scope: access.Read, Answer: on(d.deadNotices)},
		{Method: http.MethodPost, Path: "/v1/webhooks/{endpoint}/redeliver", Scope: access.Submit, Answer: on(d.redeliver)},
		{Method: http.MethodPost, Path: "/v1/webhooks/{endpoint}/enable", Scope: access.Submit, Answer: on(d.enable)},
		{Method: http.MethodPost, Path: "/v1/webhooks/{endpoint}/disable", Scope: access.Submit, Answer: on(d.disable)},
	}
}

// shownWebhook is an endpoint in an answer. Times are Unix seconds.
type shownWebhook struct {
	ID     notice.EndpointID `json:"id"`
	Origin string            `json:"origin"`
	// Secrets are shown only to a client that sends the URL.
	Secrets []string `json:"secrets,omitempty"`
	// Known is false while no webhook delivery was ever due to the endpoint.
	Known        bool          `json:"known"`
	Failures     int           `json:"failures"`
	FailingSince int64         `json:"failingSince,omitempty"`
	PausedUntil  int64         `json:"pausedUntil,omitempty"`
	Disabled     notice.Reason `json:"disabled,omitempty"`
	DisabledAt   int64         `json:"disabledAt,omitempty"`
	// Attempts and Delivered are the numbers of all attempts and of the successful ones.
	Attempts    int          `json:"attempts"`
	Delivered   int          `json:"delivered"`
	LastAttempt *lastAttempt `json:"lastAttempt,omitempty"`
	// Notices is the number of webhook deliveries that a command concerns, as far as they are
	// counted and charged; only the answer to a command has it.
	Notices *int `json:"notices,omitempty"`
}

// lastAttempt is the result of an endpoint's last attempt.
type lastAttempt struct {
	At        int64        `json:"at"`
	Delivered bool         `json:"delivered"`
	Cause     notice.Cause `json:"cause,omitempty"`
	Status    int          `json:"status,omitempty"` // the endpoint's HTTP status
}

func shownWebhookOf(e notice.Endpoint) shownWebhook {
	out := shownWebhook{
		ID: e.ID, Origin: intent.Webhook{URL: e.URL}.Origin(), Known: true, Failures: e.Failures, FailingSince: unix(e.FailingSince),
		PausedUntil: unix(e.PausedUntil), Disabled: e.Disabled, DisabledAt: unix(e.DisabledAt),
		Attempts: e.Attempts, Delivered: e.Delivered,
	}
	if !e.LastAt.IsZero() {
		out.LastAttempt = &lastAttempt{unix(e.LastAt), e.Last.Class == notice.Delivered, e.Last.Cause, e.Last.Status}
	}
	return out
}

// webhooksPage is the answer to GET /v1/webhooks, in order of id.
type webhooksPage struct {
	Webhooks   []shownWebhook `json:"webhooks"`
	NextCursor string         `json:"nextCursor,omitempty"`
	HasMore    bool           `json:"hasMore"`
}

// listWebhooks answers GET /v1/webhooks with the client's endpoints; with the scope audit or admin,
// with those of all clients.
func (d *desk) listWebhooks(r rest.Request) error {
	q, err := r.Query("limit", "after", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	after, err := afterWebhook(r, q)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	found, err := d.Webhooks.Rows.Endpoints(ctx, d.reach(r), after, limit+1)
	if err != nil {
		return err
	}
	out := webhooksPage{Webhooks: []shownWebhook{}, HasMore: len(found) > limit}
	for _, e := range found[:min(len(found), limit)] {
		out.Webhooks = append(out.Webhooks, shownWebhookOf(e))
	}
	if out.HasMore {
		out.NextCursor = r.PlaceCursor(webhooksList, halves(found[limit-1].ID[:])...)
		r.Answering().Set("Link", fmt.Sprintf(`</v1/webhooks?limit=%d&after=%s>; rel="next"`, limit, found[limit-1].ID))
	}
	return r.Reply(http.StatusOK, out)
}

// given reads the URL of a client's endpoint from the body, which is never logged.
func (d *desk) given(ctx context.Context, r rest.Request) (id notice.EndpointID, url string, err error) {
	if _, err := r.Query(); err != nil {
		return id, "", err
	}
	body, err := r.ReadBody()
	if err != nil {
		return id, "", err
	}
	in := reading{rest.NewDocument(body)}
	err = in.Whole(func() error {
		return in.Object(rest.Member{Name: "url", Read: func() error { return in.text(&url) }})
	})
	switch {
	case err != nil:
		return id, "", err
	case len(url) > intent.GivenURLMax || intent.Webhook{URL: url}.Origin() == "":
		return id, "", intent.ErrWebhookURL.Because("it is not an https URL, or longer than %d bytes", intent.GivenURLMax)
	}
	client := d.client(r)
	if err := d.Intake.Webhooks.Check(ctx, client, "", url); err != nil {
		return id, "", err
	}
	return d.Webhooks.Endpoint(client, url), url, nil
}

// ownWebhook answers POST /v1/webhooks with the id, state and secrets of the client's endpoint.
// It changes nothing.
func (d *desk) ownWebhook(r rest.Request) error {
	ctx, cancel := r.Work()
	defer cancel()
	id, url, err := d.given(ctx, r)
	if err != nil {
		return err
	}
	e, known, err := d.Webhooks.Rows.Endpoint(ctx, id)
	if err != nil {
		return err
	}
	out := shownWebhook{ID: id, Origin: intent.Webhook{URL: url}.Origin()}
	if known {
		out = shownWebhookOf(e)
	}
	out.Secrets = d.Webhooks.Secrets(id)
	return r.Reply(http.StatusOK, out)
}

const (
	// tryPlaces is the number of test deliveries, of all clients, that run at once. Each looks its
	// host up again.
	tryPlaces = 64
	// tryShare is the most test deliveries of one client that run at once.
	tryShare = 8
	// tryQueue is the most test deliveries of one client that wait.
	tryQueue = 16
)

// tried is the answer to POST /v1/webhooks/try.
type tried struct {
	ID        notice.EndpointID `json:"id"`
	Delivered bool              `json:"delivered"`
	Cause     notice.Cause      `json:"cause,omitempty"`
	Status    int               `json:"status,omitempty"` // the endpoint's HTTP status
}

// tryWebhook answers POST /v1/webhooks/try. The attempt is like any other, except that it does
// not change the endpoint's state.
func (d *desk) tryWebhook(r rest.Request) error {
	ctx, cancel := r.Work()
	defer cancel()
	id, url, err := d.given(ctx, r)
	if err != nil {
		return err
	}
	wake, room := r.Rest()
	defer wake()
	if !room {
		return rest.ErrTooManyStreams.Because("too many of the client's requests wait")
	}
	leave, err := d.tries.Enter(r.Context(), d.client(r))
	if errors.Is(err, commands.ErrTooManyWait) {
		r.Limited(rest.Limit{Wait: time.Second})
		return rest.ErrRateLimited.Because("at most %d webhook tries of one client may wait", tryQueue)
	}
	if err != nil {
		return err
	}
	defer leave()
	o := d.Webhooks.Try(r.Context(), id, url)
	return r.Reply(http.StatusOK, tried{id, o.Class == notice.Delivered, o.Cause, o.Status})
}

// found returns the endpoint that a request names, if it belongs to the client reach. The
// endpoint's id is derived from its client and URL.
func (d *desk) found(ctx context.Context, r rest.Request, reach *string) (notice.Endpoint, error) {
	id, err := namedWebhook(r)
	if err != nil {
		return notice.Endpoint{}, err
	}
	e, known, err := d.Webhooks.Rows.Endpoint(ctx, id)
	if err != nil {
		return e, err
	}
	if !known || reach != nil && notice.EndpointOf(*reach, e.URL) != id {
		return e, notice.ErrEndpoint
	}
	return e, nil
}

// namedWebhook reads the id of the endpoint that a request is about.
func namedWebhook(r rest.Request) (id notice.EndpointID, err error) {
	text, err := url.PathUnescape(mux.Vars(r.Request)["endpoint"])
	if err != nil {
		return id, rest.InParameter("endpoint", ErrInvalidWebhookID.Because("the path is not well escaped"))
	}
	if id, err = notice.ParseEndpointID(text); err != nil {
		return id, rest.InParameter("endpoint", ErrInvalidWebhookID.Because("%v", err))
	}
	return id, nil
}

// webhook answers GET /v1/webhooks/{endpoint}.
func (d *desk) webhook(r rest.Request) error {
	if _, err := r.Query(); err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	e, err := d.found(ctx, r, d.reach(r))
	if err != nil {
		return err
	}
	return r.Reply(http.StatusOK, shownWebhookOf(e))
}

// deadNotice is a dead letter: a webhook delivery that was given up.
type deadNotice struct {
	Intent   chain.IntentID  `json:"intent"`
	Sequence uint64          `json:"sequence"`
	Attempts int             `json:"attempts"`
	Cause    notice.Cause    `json:"cause"`
	Status   int             `json:"status,omitempty"`
	LastAt   int64           `json:"lastAt,omitempty"` // time of the last attempt
	Event    json.RawMessage `json:"event"`
}

// deadPage is the answer to GET /v1/webhooks/{endpoint}/dead, in order of intent and sequence.
type deadPage struct {
	Notices    []deadNotice `json:"notices"`
	NextCursor string       `json:"nextCursor,omitempty"`
	HasMore    bool         `json:"hasMore"`
}

// deadNotices answers GET /v1/webhooks/{endpoint}/dead.
func (d *desk) deadNotices(r rest.Request) error {
	q, err := r.Query("limit", "intent", "sequence", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	id, err := namedWebhook(r)
	if err != nil {
		return err
	}
	after, err := afterNotice(r, q, id)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	e, err := d.found(ctx, r, d.reach(r))
	if err != nil {
		return err
	}
	dead, err := d.Webhooks.Rows.Dead(ctx, e.ID, after, limit+1)
	if err != nil {
		return err
	}
	out := deadPage{Notices: []deadNotice{}, HasMore: len(dead) > limit}
	own := notice.EndpointOf(d.client(r), e.URL) == e.ID
	for _, n := range dead[:min(len(dead), limit)] {
		body, err := shownBody(n.Body, own)
		if err != nil {
			return fmt.Errorf("read a webhook delivery: %w", err)
		}
		out.Notices = append(out.Notices, deadNotice{n.Intent, n.Seq, n.Attempts, n.Last.Cause, n.Last.Status, unix(n.LastAt), body})
	}
	if out.HasMore {
		last := out.Notices[limit-1]
		out.NextCursor = r.PlaceCursor(deadList(e.ID), append(halves(last.Intent[:]), last.Sequence)...)
		r.Answering().Set("Link", fmt.Sprintf(`</v1/webhooks/%s/dead?limit=%d&intent=%s&sequence=%d>; rel="next"`, e.ID, limit, last.Intent, last.Sequence))
	}
	return r.ReplyRead(http.StatusOK, out)
}

// shownBody returns a delivery's body as its reader may see it.
func shownBody(body []byte, own bool) (json.RawMessage, error) {
	if own {
		return body, nil
	}
	var m intent.Message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	if m.Request.Key == "" { // a body from before bodies had requests
		return body, nil
	}
	return json.Marshal(m.ForOthers())
}

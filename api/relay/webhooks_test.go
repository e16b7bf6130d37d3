package relay

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/notifier"
	"github.com/tempo-watchtower/watchtower/commands/relay/messages"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/migrations"
	"github.com/tempo-watchtower/watchtower/projections"
)

const hookURL = "https://127.0.0.1/" + secret + "?token=" + secret

// hooked is a stack with queued webhook deliveries, which a test can make fail for good.
type hooked struct {
	*stack
	db    *embedded.DB
	rows  *embedded.Notices
	mu    sync.Mutex
	tried []string
	keys  access.State
}

func newHooked(t *testing.T, change ...func(*Config)) *hooked {
	t.Helper()
	db, err := embedded.Open("", embedded.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	check(t, projections.Migrate(t.Context(), db.View(), migrations.View))
	h := &hooked{db: db, rows: db.Notices(notice.DefaultPolicy())}
	h.stack = h.open(t, db.Log(), db.View(), change...)
	return h
}

func (h *hooked) open(t *testing.T, log port.Store, view *sql.DB, change ...func(*Config)) *stack {
	return newStack(t, log, view, append(change, func(c *Config) {
		c.API.Access = rest.Access{Keys: func() access.State { return h.keys }}
		c.Webhooks = &Webhooks{
			Rows: h.rows,
			Operator: notifier.Operator{
				Endpoints: notifier.Endpoints{Store: log, Codec: notice.Codec(), Random: rand.Reader}, Rows: h.rows, Now: c.API.Now,
			},
			Endpoint: func(client, url string) notice.EndpointID { return notice.EndpointOf(client, c.Intake.Seal.Seal(url)) },
			Secrets:  func(id notice.EndpointID) []string { return []string{"whsec_" + id.String()} },
			Try: func(_ context.Context, _ notice.EndpointID, url string) notice.Outcome {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.tried = append(h.tried, url)
				return notice.Outcome{Class: notice.Failed, Cause: notice.Status, Status: 500}
			},
		}
	})...)
}

// token creates an API key of a client.
func (h *hooked) token(client string, scopes ...access.Scope) string {
	h.t.Helper()
	return h.create(access.Key{Name: client, Client: client, Scopes: scopes})
}

// create creates an API key.
func (h *hooked) create(k access.Key) (token string) {
	h.t.Helper()
	text, id, digest, err := access.NewToken(rand.Reader)
	check(h.t, err)
	k.ID, k.Digest = id, digest
	events, err := h.keys.Decide(access.Create{Key: k, At: epoch})
	check(h.t, err)
	h.keys = h.keys.Evolve(events[0])
	return text
}

// feed feeds the present log into the queue.
func (h *hooked) feed() {
	h.t.Helper()
	head, err := h.db.Log().Head(h.t.Context())
	check(h.t, err)
	ctx, stop := context.WithCancel(h.t.Context())
	ended := make(chan error, 1)
	feeder := &notifier.Feeder{
		Store: h.db.Log(), Rows: h.rows, Checkpoints: h.db.Work(),
		Reader: notifier.Reader, Sources: []notifier.Source{{Prefix: intent.StreamPrefix, News: messages.New(h.db.Log(), 1000).News}}, Wishes: notice.Codec(), Log: h.config.API.Log,
	}
	go func() { ended <- feeder.Run(ctx) }()
	check(h.t, follower.Reached(ctx, head, func(ctx context.Context) (eventlog.Position, error) {
		return h.db.Work().Checkpoint(ctx, notifier.Reader)
	}))
	stop()
	<-ended
	h.sweep()
}

// sweep executes all pending commands for endpoints.
func (h *hooked) sweep() {
	h.t.Helper()
	for found := true; found; {
		var err error
		_, found, err = h.rows.Sweep(h.t.Context(), "", 100)
		check(h.t, err)
	}
}

// answer gives every due webhook delivery this outcome.
func (h *hooked) answer(o notice.Outcome) {
	h.t.Helper()
	for {
		due, _, err := h.rows.Lease(h.t.Context(), notice.Claim{Holder: "test", TTL: time.Minute, Limit: 100})
		check(h.t, err)
		if len(due) == 0 {
			h.sweep()
			return
		}
		var reports []notice.Report
		for _, n := range due {
			reports = append(reports, notice.Report{Key: n.Key, Outcome: o})
		}
		_, err = h.rows.Done(h.t.Context(), "test", reports)
		check(h.t, err)
	}
}

// Operators and clients can operate webhooks, each client only its own.
func TestWebhooks(t *testing.T) {
	h := newHooked(t)
	shop, other := h.token("shop", access.Submit, access.Read), h.token("other", access.Submit, access.Read)
	operator := h.token("operator", access.Submit, access.Read, access.Admin)
	do := func(method, target, body, token string) response {
		return h.do(method, target, body, "X-API-Key", token)
	}
	given := `{"url": "` + hookURL + `"}`

	own := into[shownWebhook](t, do(http.MethodPost, "/v1/webhooks", given, shop), http.StatusOK)
	if own.Known || own.Origin != "https://127.0.0.1" || len(own.Secrets) != 1 {
		t.Errorf("%+v", own)
	}
	if theirs := into[shownWebhook](t, do(http.MethodPost, "/v1/webhooks", given, other), http.StatusOK); theirs.ID == own.ID || slices.Equal(theirs.Secrets, own.Secrets) {
		t.Error("two clients have one webhook")
	}
	at := "/v1/webhooks/" + own.ID.String()
	h.problem(do(http.MethodGet, at, "", shop), 404, "unknown-webhook")

	made := into[shown](t, do(http.MethodPost, "/v1/intents", fmt.Sprintf(whole, "hooked"), shop), http.StatusAccepted)
	h.command(made.ID, assign(), attempted(1))
	h.feed()
	h.answer(notice.Outcome{Class: notice.Gone, Cause: notice.Status, Status: 410})
	got := into[shownWebhook](t, do(http.MethodGet, at, "", shop), http.StatusOK)
	if got.Disabled != notice.SaidGone || got.DisabledAt == 0 || got.Secrets != nil {
		t.Errorf("%+v", got)
	}
	dead := into[deadPage](t, do(http.MethodGet, at+"/dead", "", shop), http.StatusOK)
	if len(dead.Notices) != 2 || dead.Notices[0].Status != 410 || dead.Notices[1].Cause != notice.Off || !strings.Contains(string(dead.Notices[0].Event), "TxAccepted") {
		t.Errorf("%+v", dead)
	}
	first := do(http.MethodGet, at+"/dead?limit=1", "", shop)
	next, _, _ := strings.Cut(strings.TrimPrefix(first.header.Get("Link"), "<"), ">")
	if page := into[deadPage](t, do(http.MethodGet, next, "", shop), http.StatusOK); page.HasMore || len(page.Notices) != 1 || page.Notices[0].Sequence != 2 {
		t.Errorf("%s: %+v", next, page)
	}

	cursor := into[deadPage](t, first, http.StatusOK).NextCursor
	if page := into[deadPage](t, do(http.MethodGet, at+"/dead?limit=1&cursor="+cursor, "", shop), http.StatusOK); page.HasMore || len(page.Notices) != 1 || page.Notices[0].Sequence != 2 {
		t.Errorf("%s: %+v", cursor, page)
	}
	h.problem(do(http.MethodGet, "/v1/webhooks/"+notice.EndpointID{1}.String()+"/dead?cursor="+cursor, "", shop), 400, "invalid-cursor")
	h.problem(do(http.MethodGet, "/v1/webhooks?cursor="+cursor, "", operator), 400, "invalid-cursor")

	h.problem(do(http.MethodPost, at+"/redeliver", "", shop), 409, "endpoint-disabled")
	into[shownWebhook](t, do(http.MethodPost, at+"/enable", "", shop), http.StatusAccepted)
	h.feed()
	into[shownWebhook](t, do(http.MethodPost, at+"/redeliver", fmt.Sprintf(`{"notices": [{"intent": %q, "sequence": 2}]}`, made.ID), shop), http.StatusAccepted)
	into[shownWebhook](t, do(http.MethodPost, at+"/redeliver", "", operator), http.StatusAccepted)
	h.feed()
	h.answer(notice.Outcome{Class: notice.Delivered, Status: 204})
	if dead := into[deadPage](t, do(http.MethodGet, at+"/dead", "", shop), http.StatusOK); len(dead.Notices) != 0 {
		t.Errorf("%+v", dead)
	}
	into[shownWebhook](t, do(http.MethodPost, at+"/disable", "", operator), http.StatusAccepted)
	h.feed()
	if got := into[shownWebhook](t, do(http.MethodGet, at, "", shop), http.StatusOK); got.Disabled != notice.Operator {
		t.Errorf("%+v", got)
	}
	h.wished(own.ID, "enabled", "redelivery_asked", "redelivery_asked", "disabled")

	for key, want := range map[string]int{shop: 1, other: 0} {
		got := into[webhooksPage](t, do(http.MethodGet, "/v1/webhooks", "", key), http.StatusOK)
		if len(got.Webhooks) != want || want > 0 && (got.Webhooks[0].ID != own.ID || got.Webhooks[0].Attempts == 0 || got.Webhooks[0].LastAttempt == nil || !got.Webhooks[0].LastAttempt.Delivered) {
			t.Errorf("a client lists %+v", got.Webhooks)
		}
	}
	if all := into[webhooksPage](t, do(http.MethodGet, "/v1/webhooks?limit=1", "", operator), http.StatusOK); len(all.Webhooks) != 1 || all.HasMore || all.Webhooks[0].ID != own.ID {
		t.Errorf("%+v", all)
	}
	if all := into[webhooksPage](t, do(http.MethodGet, "/v1/webhooks?after="+own.ID.String(), "", operator), http.StatusOK); len(all.Webhooks) != 0 {
		t.Errorf("%+v", all)
	}
	for _, path := range []string{"", "/dead"} {
		h.problem(do(http.MethodGet, at+path, "", other), 404, "unknown-webhook")
	}
	for _, path := range []string{"/redeliver", "/enable", "/disable"} {
		h.problem(do(http.MethodPost, at+path, "", other), 404, "unknown-webhook")
	}
	second := into[shown](t, do(http.MethodPost, "/v1/intents", fmt.Sprintf(whole, "other's"), other), http.StatusAccepted)
	h.command(second.ID, assign())
	h.feed()
	page := into[webhooksPage](t, do(http.MethodGet, "/v1/webhooks?limit=1", "", operator), http.StatusOK)
	last := into[webhooksPage](t, do(http.MethodGet, "/v1/webhooks?cursor="+page.NextCursor, "", operator), http.StatusOK)
	if len(page.Webhooks) != 1 || !page.HasMore || len(last.Webhooks) != 1 || last.HasMore || last.NextCursor != "" || page.Webhooks[0].ID == last.Webhooks[0].ID {
		t.Errorf("%+v, then %+v", page, last)
	}
	if strings.Contains(h.log.String(), secret) {
		t.Error("the log tells the secret of a webhook")
	}
}

// A command counts the webhook deliveries that it concerns, up to the client's burst, and is
// charged for each. So no rate forbids it for ever.
func TestWebhookCommandsAreCharged(t *testing.T) {
	h := newHooked(t)
	rate := access.Rate{PerSecond: 1, Burst: 100}
	create := func(client string) string {
		return h.create(access.Key{Name: client, Client: client, Scopes: []access.Scope{access.Submit, access.Read}, Rate: &rate})
	}
	few, many := create("few"), create("many")
	do := func(target, body, token string) response {
		return h.do(http.MethodPost, target, body, "X-API-Key", token)
	}
	left := func(res response, notices, left int) {
		t.Helper()
		if got := into[shownWebhook](t, res, http.StatusAccepted); got.Notices == nil || *got.Notices != notices {
			t.Errorf("it concerns %v", got.Notices)
		}
		if got := res.header.Get("Ratelimit"); !strings.HasPrefix(got, fmt.Sprintf(`"key";r=%d;`, left)) {
			t.Errorf("%d are left, not %s", left, got)
		}
	}
	at := h.fill("few", 30)
	left(do(at+"/disable", "", few), 30, 70)
	h.feed()
	left(do(at+"/disable", "", few), 0, 69)
	into[shownWebhook](t, do(at+"/enable", "", few), http.StatusAccepted)
	h.feed()
	left(do(at+"/redeliver", `{"notices": [`+strings.Repeat(fmt.Sprintf(`{"intent": %q, "sequence": 1},`, chain.IntentID{1}), 19)+
		fmt.Sprintf(`{"intent": %q, "sequence": 1}`, chain.IntentID{})+`]}`, few), 20, 48)
	left(do(at+"/redeliver", "", few), 30, 18)
	h.feed()
	h.problem(do(at+"/disable", "", few), 429, "rate-limited")
	left(do(h.fill("many", 500)+"/disable", "", many), rate.Burst, 0)
}

// endpoint returns the id of a client's endpoint.
func (h *hooked) endpoint(client string) notice.EndpointID {
	return notice.EndpointOf(client, h.config.Intake.Seal.Seal(hookURL))
}

// fill queues webhook deliveries of a client, each of another intent. It returns the path of
// their endpoint.
func (h *hooked) fill(client string, n int) (path string) {
	h.t.Helper()
	url, id := h.config.Intake.Seal.Seal(hookURL), h.endpoint(client)
	var news []notice.News
	for i := range n {
		key := notice.Key{Endpoint: id, Intent: chain.IntentID{byte(i), byte(i >> 8)}, Seq: 1}
		news = append(news, notice.News{Key: key, Client: client, URL: url, Body: []byte("{}")})
	}
	check(h.t, h.rows.Enqueue(h.t.Context(), "fill "+client, 0, 1, news))
	return "/v1/webhooks/" + id.String()
}

// wished checks the events of an endpoint, and that each command has an actor.
func (h *hooked) wished(id notice.EndpointID, want ...string) {
	h.t.Helper()
	var got []string
	for r, err := range h.db.Log().ReadStream(h.t.Context(), notice.Stream(id), 0) {
		check(h.t, err)
		got = append(got, strings.TrimSuffix(strings.TrimPrefix(r.Name, "webhook."), ".v1"))
		if !strings.HasPrefix(r.Meta.Actor, "api key ") {
			h.t.Errorf("%s was wished by %q", r.Name, r.Meta.Actor)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		h.t.Error(d)
	}
}

// A test delivery is made like a real one, and only to an allowed URL.
func TestTryWebhook(t *testing.T) {
	h := newHooked(t)
	shop := h.token("shop", access.Submit)
	do := func(target, body string) response { return h.do(http.MethodPost, target, body, "X-API-Key", shop) }
	got := into[tried](t, do("/v1/webhooks/try", `{"url": "`+hookURL+`"}`), http.StatusOK)
	if got.Delivered || got.Status != 500 || got.Cause != notice.Status || !slices.Equal(h.tried, []string{hookURL}) {
		t.Errorf("%+v, tried %v", got, h.tried)
	}
	for _, target := range []string{"/v1/webhooks/try", "/v1/webhooks"} {
		for name, url := range map[string]string{
			"inside": "https://10.0.0.1/" + secret, "no URL": secret, "a password": "https://a:" + secret + "@127.0.0.1/",
			"long": "https://127.0.0.1/" + strings.Repeat(secret, 100), "ftp": "ftp://127.0.0.1/" + secret,
		} {
			res := do(target, `{"url": "`+url+`"}`)
			h.problem(res, 422, "webhook-url")
			if strings.Contains(string(res.body), secret) {
				t.Errorf("%s: %s", name, res.body)
			}
		}
		h.problem(do(target, `{}`), 400, "invalid-request")
		h.problem(do(target+"?x=1", `{"url": "`+hookURL+`"}`), 400, "invalid-filter")
	}
	if len(h.tried) != 1 {
		t.Errorf("tried %v", h.tried)
	}
	if head, err := h.db.Log().Head(t.Context()); head != 0 || err != nil {
		t.Errorf("%d events are recorded, %v", head, err)
	}
}

// Malformed requests are refused. Without webhook delivery the routes do not exist.
func TestBadWebhookRequests(t *testing.T) {
	h := newHooked(t)
	operator := h.token("operator", access.Submit, access.Read, access.Admin)
	some := "/v1/webhooks/" + notice.EndpointID{1}.String()
	for target, code := range map[string]string{
		"/v1/webhooks?limit=0": "invalid-limit", "/v1/webhooks?after=x": "invalid-filter", "/v1/webhooks/12": "invalid-webhook-id",
		"/v1/webhooks/" + strings.ToUpper(notice.EndpointID{0xab}.String()): "invalid-webhook-id",
		some + "/dead?intent=" + chain.IntentID{1}.String():                 "invalid-filter", some + "/dead?sequence=1": "invalid-filter",
		some + "/dead?sequence=x&intent=" + chain.IntentID{1}.String(): "invalid-filter", some + "/dead?cursor=x": "invalid-cursor",
		some + "/dead?sequence=1&cursor=x&intent=" + chain.IntentID{1}.String(): "invalid-filter",
		"/v1/webhooks?cursor=x": "invalid-cursor", "/v1/webhooks?cursor=x&after=" + notice.EndpointID{1}.String(): "invalid-filter",
	} {
		h.problem(h.do(http.MethodGet, target, "", "X-API-Key", operator), 400, code)
	}
	for _, body := range []string{`{"notices": []}`, `{"notices": [{"intent": "0x12", "sequence": 1}]}`, `{"notices": [{"sequence": 1}]}`, `[]`, `{"all": true}`} {
		h.problem(h.do(http.MethodPost, some+"/redeliver", body, "X-API-Key", operator), 400, "invalid-request")
	}
	one := fmt.Sprintf(`{"intent": %q, "sequence": 1}`, chain.IntentID{1})
	many := `{"notices": [` + strings.Repeat(one+",", notice.RedeliverMax) + one + `]}`
	h.problem(h.do(http.MethodPost, some+"/redeliver", many, "X-API-Key", operator), 413, "redelivery-too-large")
	h.problem(h.do(http.MethodPost, some+"/redeliver", "", "X-API-Key", operator), 404, "unknown-webhook")

	bare := newStack(t, h.db.Log(), h.db.View())
	bare.problem(bare.do(http.MethodPost, "/v1/webhooks", `{"url": "`+hookURL+`"}`), 404, "not-found")
}

package relay

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// counted is a queue that records its counts. Counts of the endpoint slow wait until proceed is
// closed.
type counted struct {
	*embedded.Notices
	slow    notice.EndpointID
	proceed chan struct{}

	mu    sync.Mutex
	most  []int // arguments of the counts
	found []int // results of the counts
}

func (c *counted) Count(ctx context.Context, endpoint notice.EndpointID, stage notice.Stage, most int) (int, error) {
	if endpoint == c.slow {
		select {
		case <-c.proceed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	n, err := c.Notices.Count(ctx, endpoint, stage, most)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most, c.found = append(c.most, most), append(c.found, n)
	return n, err
}

// A command reads no more webhook deliveries than the client's burst, also when the client cannot
// pay for them. A redelivery to a disabled endpoint reads none.
func TestWebhookCountsAreBounded(t *testing.T) {
	const burst, all = 50, 150
	h := newHooked(t)
	counts := &counted{Notices: h.rows}
	h.config.Webhooks.Rows = counts
	token := h.create(access.Key{Name: "greedy", Client: "greedy", Scopes: []access.Scope{access.Submit}, Rate: &access.Rate{PerSecond: 1, Burst: burst}})
	operator := h.token("operator", access.Submit, access.Admin)
	do := func(path, token string) response { return h.do(http.MethodPost, path, "", "X-API-Key", token) }
	at := h.fill("greedy", all)
	into[shownWebhook](t, do(at+"/disable", operator), http.StatusAccepted)
	h.feed()
	if want := []int{all}; !slices.Equal(counts.found, want) {
		t.Errorf("a client without a rate: counted %v, want %v", counts.found, want)
	}
	counts.most, counts.found = nil, nil
	h.problem(do(at+"/redeliver", token), http.StatusConflict, "endpoint-disabled")
	if len(counts.most) != 0 {
		t.Errorf("counted up to %v for a disabled endpoint", counts.most)
	}
	into[shownWebhook](t, do(at+"/enable", token), http.StatusAccepted)
	h.feed()
	for range 3 { // its bucket is not full
		h.problem(do(at+"/redeliver", token), http.StatusTooManyRequests, "rate-limited")
	}
	if want := []int{burst, burst, burst}; !slices.Equal(counts.most, want) || !slices.Equal(counts.found, want) {
		t.Errorf("counted %v, up to %v, want %v", counts.found, counts.most, want)
	}
}

// refusedOf sends requests at once, of which one too many is refused with 429. Then it releases the
// others, and returns their answers.
func (h *hooked) refusedOf(n int, release func(), send func() response) (others []response) {
	h.t.Helper()
	answers := make(chan response, n)
	for range n {
		go func() { answers <- send() }()
	}
	select {
	case res := <-answers:
		h.problem(res, http.StatusTooManyRequests, "rate-limited")
		if res.header.Get("Retry-After") != "1" {
			h.t.Errorf("Retry-After %q", res.header.Get("Retry-After"))
		}
	case <-time.After(30 * time.Second):
		h.t.Errorf("none of %d requests of one client is refused", n)
		n++
	}
	release()
	for range n - 1 {
		others = append(others, <-answers)
	}
	return others
}

// A client's counts take its list places: three run, 32 wait, and the next is refused. Another
// client's command is carried out meanwhile.
func TestWebhookCountsTakePlaces(t *testing.T) {
	const running, waiting = 3, 32
	h := newHooked(t, func(c *Config) {
		c.API.Limits.WorkTimeout, c.API.Limits.WriteTimeout = time.Hour, 2*time.Hour
	})
	counts := &counted{Notices: h.rows, slow: h.endpoint("greedy"), proceed: make(chan struct{})}
	h.config.Webhooks.Rows = counts
	greedy, other := h.token("greedy", access.Submit), h.token("other", access.Submit)
	at, theirs := h.fill("greedy", 1), h.fill("other", 1)
	h.refusedOf(running+waiting+1, func() {
		into[shownWebhook](t, h.do(http.MethodPost, theirs+"/disable", "", "X-API-Key", other), http.StatusAccepted)
		close(counts.proceed)
	}, func() response {
		res, _ := h.send(http.MethodPost, at+"/disable", "", "X-API-Key", greedy)
		return res
	})
}

// Of one client's test deliveries eight run, 16 wait, and the next is refused. Another client's
// runs at once.
func TestTriesTakePlaces(t *testing.T) {
	h := newHooked(t, func(c *Config) { c.API.Limits.WriteTimeout = time.Hour })
	proceed := make(chan struct{})
	own, theirs := h.endpoint("greedy"), h.endpoint("other")
	h.config.Webhooks.Try = func(ctx context.Context, id notice.EndpointID, _ string) notice.Outcome {
		if id == own {
			select {
			case <-proceed:
			case <-ctx.Done():
			}
		}
		return notice.Outcome{Class: notice.Delivered, Status: 204}
	}
	try := func(token string) response {
		res, _ := h.send(http.MethodPost, "/v1/webhooks/try", `{"url": "`+hookURL+`"}`, "X-API-Key", token)
		return res
	}
	greedy, other := h.token("greedy", access.Submit), h.token("other", access.Submit)
	answers := h.refusedOf(tryShare+tryQueue+1, func() {
		if got := into[tried](t, try(other), http.StatusOK); got.ID != theirs || !got.Delivered {
			t.Errorf("%+v", got)
		}
		close(proceed)
	}, func() response { return try(greedy) })
	for _, res := range answers {
		if got := into[tried](t, res, http.StatusOK); !got.Delivered {
			t.Errorf("%+v", got)
		}
	}
}

package relay

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// naming is a request that names an intent or a webhook.
type naming struct{ target, body string }

func namingOf(id chain.IntentID, attempt chain.Hash, to notice.EndpointID) map[string][]naming {
	in, hook := "/v1/intents/"+id.String(), "/v1/webhooks/"+to.String()
	return map[string][]naming{
		"GET /v1/intents":                  {{"/v1/intents?hash=" + attempt.String(), ""}},
		"GET /v1/intents/{id}":             {{in, ""}, {in + "?wait=completed&timeout=0", ""}},
		"GET /v1/intents/{id}/events":      {{in + "/events", ""}, {in + "/events?after=1", ""}},
		"POST /v1/intents/{id}/cancel":     {{in + "/cancel", `{}`}},
		"POST /v1/intents/{id}/speed-up":   {{in + "/speed-up", `{"feePerGas": "20000000000"}`}, {in + "/speed-up", `{"feePerGas": "1"}`}},
		"GET /v1/events":                   {{"/v1/events?after=0&until=head&intent=" + id.String(), ""}, {"/v1/events?after=1&until=2&intent=" + id.String(), ""}},
		"GET /v1/webhooks/{endpoint}":      {{hook, ""}},
		"GET /v1/webhooks/{endpoint}/dead": {{hook + "/dead", ""}, {hook + "/dead?intent=" + id.String() + "&sequence=1", ""}},
		"POST /v1/webhooks/{endpoint}/redeliver": {
			{hook + "/redeliver", ""}, {hook + "/redeliver", fmt.Sprintf(`{"notices": [{"intent": %q, "sequence": 1}]}`, id)},
		},
		"POST /v1/webhooks/{endpoint}/enable":  {{hook + "/enable", ""}},
		"POST /v1/webhooks/{endpoint}/disable": {{hook + "/disable", ""}},
	}
}

// asStranger sends a request with a key of a new client. It returns the whole answer and the
// rest of the client's rate.
func (h *hooked) asStranger(n int, method string, of naming) string {
	h.t.Helper()
	token := h.token(fmt.Sprint("stranger-", n), access.Submit, access.Read, access.Cancel)
	res, err := h.send(method, of.target, of.body, "X-API-Key", token, "X-Request-Id", "same", "Accept", "application/x-ndjson")
	check(h.t, err)
	after, err := h.send(http.MethodGet, "/v1/intents", "", "X-API-Key", token)
	check(h.t, err)
	res.header.Del("Date")
	text := fmt.Sprintln(res.status)
	for _, name := range slices.Sorted(maps.Keys(res.header)) {
		text += name + ": " + strings.Join(res.header[name], ", ") + "\n"
	}
	return text + string(res.body) + "\nthen " + after.header.Get("RateLimit")
}

// A client that names another client's intent or webhook gets the answer for an unknown one, on
// every route, with the same headers and the same charge. This holds the first time, when its
// events are read, and later, when its owner is cached.
func TestForeignIsAnsweredAndChargedAsUnknown(t *testing.T) {
	h := newHooked(t, func(c *Config) { c.API.Rates.Key = rest.Rate{PerSecond: 1, Burst: 10_000} })
	ann := h.token("ann", access.Submit, access.Read, access.Cancel)
	body := strings.Replace(fmt.Sprintf(whole, "of-ann"), "0xCAFE", "0x"+strings.Repeat("ca", largeBytes), 1) // so that its bytes would show in a charge
	made := into[shown](t, h.do(http.MethodPost, "/v1/intents", body, "X-API-Key", ann), http.StatusAccepted)
	h.command(made.ID, assign(), attempted(1))
	h.project()
	h.feed()
	h.answer(notice.Outcome{Class: notice.Gone, Cause: notice.Status, Status: 410})

	foreign := namingOf(made.ID, attempted(1).(intent.Attempt).Hash, h.config.Webhooks.Endpoint("ann", hookURL))
	unknown := namingOf(chain.IntentID{0xab}, chain.Hash{0xab}, notice.EndpointID{0xab})
	n := 0
	for _, r := range (&desk{Config: h.config}).routes() {
		name := r.Method + " " + r.Path
		if _, there := foreign[name]; !there {
			ofFleet := strings.HasPrefix(r.Path, "/v1/signers/") || strings.HasPrefix(r.Path, "/v1/lanes/") // they name no intent
			if strings.Contains(r.Path, "{") && !ofFleet || r.Path == "/v1/events" {
				t.Errorf("%s: it is not said how it names an intent", name)
			}
			continue
		}
		for i := range foreign[name] {
			n += 3
			want := h.asStranger(n, r.Method, unknown[name][i])
			for again := range 2 {
				if d := cmp.Diff(want, h.asStranger(n+1+again, r.Method, foreign[name][i])); d != "" {
					t.Errorf("%s %s (-unknown +another's):\n%s", r.Method, foreign[name][i].target, d)
				}
			}
		}
	}
}

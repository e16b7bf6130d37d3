package relay

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// largeBytes is the size of the data of a large intent.
const largeBytes = 96 << 10

// large returns a request of an intent with much data.
func large(key string) string {
	return strings.TrimSuffix(fmt.Sprintf(plain, key), "}") + `, "data": "0x` + strings.Repeat("ca", largeBytes) + `"}`
}

// countingCodec decodes two kinds of events, and counts how often.
func countingCodec(requested, assigned *atomic.Int64) eventlog.Codec[intent.Event] {
	return eventlog.NewCodec(
		eventlog.From("intent.requested.v1", func(e intent.Requested) intent.Event { requested.Add(1); return e }),
		eventlog.From("intent.assigned.v1", func(e intent.Assigned) intent.Event { assigned.Add(1); return e }),
	)
}

// Many clients follow the events of one intent with much data: its request and its public event are
// decoded once for all of them.
func TestFollowersShareADecoding(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		var requested, assigned atomic.Int64
		replica := open(func(c *Config) {
			desk := *c.Intake
			desk.Intents = intake.Intents{Store: desk.Intents.Store, Codec: countingCodec(&requested, &assigned), Random: desk.Intents.Random}
			c.Intake = &desk
		})
		followers := make([]*listener, rest.ClientStreams)
		for i := range followers {
			followers[i] = replica.listen("", "application/x-ndjson")
		}
		id := into[shown](t, s.do(http.MethodPost, "/v1/intents", large("one")), http.StatusAccepted).ID
		s.command(id, assign())
		for _, f := range followers {
			if e, ok := f.next(); !ok || said(e) != id.String()+" 1 TxAccepted" {
				t.Fatalf("a follower gets %+v", e)
			}
		}
		if r, a := requested.Load(), assigned.Load(); r != 1 || a != 1 {
			t.Errorf("for %d followers the request was decoded %d times, and its first public event %d times; want 1 and 1", len(followers), r, a)
		}
	})
}

// A request that reads an intent with much data is charged for the bytes, once they are read. A
// client that cannot pay gets the answer, and pays before its next request.
func TestLargeReadsAreCharged(t *testing.T) {
	const units = 13         // 96 KiB of data are 192 KiB of hex
	var seconds atomic.Int64 // since the test began
	elapse := func(d time.Duration) { seconds.Add(int64(d / time.Second)) }
	h := newHooked(t, func(c *Config) {
		c.API.Rates.Key = rest.Rate{PerSecond: 1, Burst: 40}
		c.API.Now = func() time.Time { return epoch.Add(time.Duration(seconds.Load()) * time.Second) }
	})
	ann := h.token("ann", access.Submit, access.Read)
	small := into[shown](t, h.do(http.MethodPost, "/v1/intents", fmt.Sprintf(plain, "small"), "X-API-Key", ann), http.StatusAccepted).ID
	id := into[shown](t, h.do(http.MethodPost, "/v1/intents", large("large"), "X-API-Key", ann), http.StatusAccepted).ID
	reads := []string{"/v1/intents/" + id.String(), "/v1/intents/" + id.String() + "/events", "/v1/intents?key=large&signer=0x0100000000000000000000000000000000000000"}
	left := func(res response, want string) {
		t.Helper()
		if got := res.header.Get("RateLimit"); res.status != http.StatusOK || got != want {
			t.Errorf("answered %d with RateLimit %s, want %s", res.status, got, want)
		}
	}
	for _, target := range reads {
		elapse(time.Hour)
		left(h.do(http.MethodGet, target, "", "X-API-Key", ann), fmt.Sprintf(`"key";r=%d;t=%d`, 40-units, units))
	}
	elapse(time.Hour)
	for i := range 3 {
		left(h.do(http.MethodGet, reads[0], "", "X-API-Key", ann), fmt.Sprintf(`"key";r=%d;t=%d`, 40-(i+1)*units, (i+1)*units))
	}
	left(h.do(http.MethodGet, reads[0], "", "X-API-Key", ann), fmt.Sprintf(`"key";r=0;t=%d`, 4*units))
	for range 2 { // a refused request costs nothing
		res := h.do(http.MethodGet, "/v1/intents/"+small.String(), "", "X-API-Key", ann)
		h.problem(res, http.StatusTooManyRequests, "rate-limited")
		if got, want := res.header.Get("Retry-After"), fmt.Sprint(4*units-40+1); got != want {
			t.Errorf("retry after %s, want %s", got, want)
		}
	}
	elapse((4*units - 40 + 1) * time.Second)
	left(h.do(http.MethodGet, "/v1/intents/"+small.String(), "", "X-API-Key", ann), `"key";r=0;t=40`)
}

// A request that ends in an error is charged for the bytes that it has read until then. Unknown and
// foreign intents stay free.
func TestFailedReadsAreCharged(t *testing.T) {
	const units = 13
	h := newCharged(t)
	scopes := []access.Scope{access.Submit, access.Read, access.Cancel}
	ann, bob := h.token("ann", scopes...), h.token("bob", scopes...)
	in := "/v1/intents/" + into[shown](t, h.do(http.MethodPost, "/v1/intents", large("large"), "X-API-Key", ann), http.StatusAccepted).ID.String()
	h.store.broken.Store(true)
	for _, r := range []struct{ method, target string }{
		{http.MethodGet, in},
		{http.MethodGet, in + "/events"},
		{http.MethodGet, "/v1/intents?key=large&signer=0x0100000000000000000000000000000000000000"},
		{http.MethodPost, in + "/cancel"},
		{http.MethodPost, in + "/speed-up"},
	} {
		h.costs(h.stack, r.method, r.target, ann, http.StatusServiceUnavailable, units)
		if strings.HasPrefix(r.target, in) {
			h.costs(h.stack, r.method, r.target, bob, http.StatusNotFound, 1)
		}
	}
}

// An intent costs one unit of rate and one for each of its webhooks. A batch that costs more than the
// burst is answered, and the client pays before its next request.
func TestWebhooksAreCharged(t *testing.T) {
	var seconds atomic.Int64 // since the test began
	h := newHooked(t, func(c *Config) {
		c.API.Rates.Key = rest.Rate{PerSecond: 1, Burst: 20}
		c.API.Now = func() time.Time { return epoch.Add(time.Duration(seconds.Load()) * time.Second) }
	})
	ann := h.token("ann", access.Submit)
	of := func(key string, webhooks int) string {
		var urls []string
		for i := range webhooks {
			urls = append(urls, fmt.Sprintf(`"https://127.0.0.1/%d"`, i))
		}
		return strings.TrimSuffix(fmt.Sprintf(plain, key), "}") + `, "webhooks": [` + strings.Join(urls, ",") + `]}`
	}
	ask := func(status int, left, body string) {
		t.Helper()
		res := h.do(http.MethodPost, "/v1/intents", body, "X-API-Key", ann)
		if got := res.header.Get("RateLimit"); res.status != status || got != left {
			t.Errorf("answered %d with RateLimit %s, want %d with %s: %s", res.status, got, status, left, res.body)
		}
	}
	ask(http.StatusAccepted, `"key";r=19;t=1`, fmt.Sprintf(plain, "none"))
	ask(http.StatusAccepted, `"key";r=17;t=3`, of("one", 1))
	ask(http.StatusAccepted, `"key";r=11;t=9`, "["+of("two", 2)+","+of("three", 2)+"]")
	seconds.Add(100)
	ask(http.StatusAccepted, `"key";r=0;t=27`, "["+of("four", 8)+","+of("five", 8)+","+of("six", 8)+"]")
	ask(http.StatusTooManyRequests, `"key";r=0;t=8`, fmt.Sprintf(plain, "more"))
	seconds.Add(8)
	ask(http.StatusAccepted, `"key";r=0;t=20`, fmt.Sprintf(plain, "more"))
}

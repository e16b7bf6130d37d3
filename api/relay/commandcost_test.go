package relay

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// spy is a store that counts the reads of one stream, and can make reads of streams fail.
type spy struct {
	port.Store
	stream eventlog.Stream
	reads  atomic.Int64
	whole  atomic.Int64 // reads of any stream from its first event on
	second func()       // called at the second read of the stream, when set
	broken atomic.Bool  // reads fail after the first event
}

func (s *spy) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	if stream == s.stream && s.reads.Add(1) == 2 && s.second != nil {
		s.second()
	}
	if after == 0 {
		s.whole.Add(1)
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		for recorded, err := range s.Store.ReadStream(ctx, stream, after) {
			if !yield(recorded, err) {
				return
			}
			if s.broken.Load() {
				yield(eventlog.Recorded{}, context.DeadlineExceeded)
				return
			}
		}
	}
}

// charged is a stack on which each client has 40 requests at once, and one more each second.
type charged struct {
	*hooked
	seconds atomic.Int64 // since the test began
	store   *spy
}

func newCharged(t *testing.T) *charged {
	h := &charged{store: new(spy)}
	h.hooked = newHooked(t, h.rated, func(c *Config) { h.store.Store, c.Intake.Intents.Store = c.Intake.Intents.Store, h.store })
	return h
}

// rated sets the rate and the clock.
func (h *charged) rated(c *Config) {
	c.API.Rates.Key = rest.Rate{PerSecond: 1, Burst: 40}
	c.API.Now = func() time.Time { return epoch.Add(time.Duration(h.seconds.Load()) * time.Second) }
}

// costs sends a request to a replica, an hour after the last one, and checks its status and charge.
func (h *charged) costs(s *stack, method, target, token string, status, units int) {
	h.t.Helper()
	h.seconds.Add(3600)
	body := ""
	if strings.HasSuffix(target, "/speed-up") {
		body = `{"feePerGas": "20000000000"}`
	}
	res := s.do(method, target, body, "X-API-Key", token)
	if got, want := res.header.Get("RateLimit"), fmt.Sprintf(`"key";r=%d;t=%d`, 40-units, units); res.status != status || got != want {
		h.t.Errorf("%s %s answered %d with RateLimit %s, want %d with %s", method, target, res.status, got, status, want)
	}
}

// A command for an intent is charged for the bytes of the intent's events, also if the intent has
// ended. Of another client's intent nothing is decoded but its owner, and its bytes are free.
func TestCommandsAreCharged(t *testing.T) {
	const units = 13 // 96 KiB of data are 192 KiB of hex
	var requested, assigned atomic.Int64
	h := newCharged(t)
	ann, bob := h.token("ann", access.Submit, access.Cancel), h.token("bob", access.Submit, access.Cancel)
	in := "/v1/intents/" + into[shown](t, h.do(http.MethodPost, "/v1/intents", large("large"), "X-API-Key", ann), http.StatusAccepted).ID.String()
	counting := h.open(t, h.db.Log(), h.db.View(), h.rated, func(c *Config) { c.Intake.Intents.Codec = countingCodec(&requested, &assigned) })
	for _, command := range []string{"/cancel", "/speed-up"} {
		h.costs(counting, http.MethodPost, in+command, bob, http.StatusNotFound, 1)
	}
	if n := requested.Load(); n != 0 {
		t.Errorf("another client's intent was decoded %d times", n)
	}
	h.costs(h.stack, http.MethodPost, in+"/speed-up", ann, http.StatusAccepted, units)
	for range 2 { // the second time it has ended
		h.costs(h.stack, http.MethodPost, in+"/cancel", ann, http.StatusOK, units)
	}
	h.costs(h.stack, http.MethodPost, in+"/speed-up", ann, http.StatusOK, units)
}

// A request for an intent that exists is charged for the bytes of the intent's events, as a read of
// it is, also if the request is refused. The items of a batch pay together.
func TestRepeatedRequestsAreCharged(t *testing.T) {
	const units = 13 // 96 KiB of data are 192 KiB of hex
	h := newCharged(t)
	ann, bob := h.token("ann", access.Submit), h.token("bob", access.Submit)
	h.do(http.MethodPost, "/v1/intents", large("large"), "X-API-Key", ann)
	small := fmt.Sprintf(plain, "large") // another request under the same key
	invalid := strings.Replace(small, `"chainId": 42431`, `"chainId": 4`, 1)
	another := fmt.Sprintf(plain, "small")
	for _, c := range []struct {
		body, token   string
		status, units int
	}{
		{small, bob, http.StatusAccepted, 1},
		{small, ann, http.StatusUnprocessableEntity, units},
		{invalid, ann, http.StatusUnprocessableEntity, units},
		{another, ann, http.StatusAccepted, 1},
		{"[" + small + "," + small + "," + another + "]", ann, http.StatusAccepted, 2*units - 1}, // the bytes are added, then rounded up
		{"[" + strings.Repeat(small+",", 9) + small + "]", ann, http.StatusOK, 40},               // at most the burst
	} {
		h.seconds.Add(3600)
		res := h.do(http.MethodPost, "/v1/intents", c.body, "X-API-Key", c.token)
		if got, want := res.header.Get("RateLimit"), fmt.Sprintf(`"key";r=%d;t=%d`, 40-c.units, c.units); res.status != c.status || got != want {
			t.Errorf("%.40s… answered %d with RateLimit %s, want %d with %s", c.body, res.status, got, c.status, want)
		}
	}
}

// A request that waits reads an intent's new events alone, however often it looks at the intent.
func TestWaitsReadNewEvents(t *testing.T) {
	h := newCharged(t)
	ann := h.token("ann", access.Submit, access.Read)
	whole := func(want int64) {
		t.Helper()
		if got := h.store.whole.Swap(0); got != want {
			t.Errorf("the intent was read as a whole %d times, want %d", got, want)
		}
	}
	h.store.whole.Store(0)
	id := into[shown](t, h.do(http.MethodPost, "/v1/intents?wait=assigned&timeout=0", large("large"), "X-API-Key", ann), http.StatusAccepted).ID
	whole(1) // before the append, as the request is large
	in := "/v1/intents/" + id.String()
	h.do(http.MethodGet, in+"?wait=assigned&timeout=0", "", "X-API-Key", ann)
	whole(2) // before the wait and after it

	looks := make(chan struct{})
	h.seconds.Add(3600)
	h.store.reads.Store(0)
	h.store.stream, h.store.second = stream(id), func() { close(looks) }
	commanded := make(chan struct{})
	go func() {
		defer close(commanded)
		<-looks
		h.command(id, assign()) // reads the intent as a whole
	}()
	got := into[shown](t, h.do(http.MethodGet, in+"?wait=assigned&timeout=50", "", "X-API-Key", ann), http.StatusOK)
	if got.Waited == nil || !got.Waited.Reached {
		t.Errorf("waited %+v", got.Waited)
	}
	<-commanded
	whole(3)
}

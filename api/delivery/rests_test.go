package delivery

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
)

// One client cannot take all places for waiting and streaming: others still get some.
func TestOneClientsRests(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) {
		c.Rates.Key = rest.Rate{PerSecond: 1000, Burst: 1000}
		c.Limits.ClientStreams, c.Limits.Connections = 2, 2*4 // a client may have a quarter of them
	})
	greedy, other := keys.Scoped(access.Read, access.Submit), keys.Scoped(access.Audit)
	first, _ := s.tune("", "X-API-Key", greedy), s.tune("", "X-API-Key", greedy)
	refused := s.do(http.MethodGet, "/v1/events", nil, "X-API-Key", greedy)
	wantProblem(t, "one too many of one client", refused, http.StatusTooManyRequests, access.ErrQuotaExceeded)
	s.tune("", "X-API-Key", other)
	first.close()
	deadline := time.After(3 * patience) // for all of it
	for {                                // until its share is free again
		if res, err := s.send(http.MethodHead, "/v1/events", nil, "X-API-Key", greedy); err == nil && res.status == http.StatusOK {
			break
		}
		select {
		case <-deadline:
			t.Fatal("the stream's place was not given back")
		case <-time.After(5 * time.Millisecond):
		}
	}

	res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, signed(t, newKey(t), testChain, 0)), "X-API-Key", greedy)
	var out struct{ Results []result }
	unmarshal(t, res.body, &out)
	wait := "/v1/transactions/" + out.Results[0].TxHash.String() + "?wait=executed&timeout="
	waited := func(res response) object {
		t.Helper()
		shown, _ := s.waitedOf(res)["waited"].(object)
		return shown
	}
	var answers [2]chan response
	for i := range answers {
		answers[i] = make(chan response, 1)
		go func() {
			for {
				res, err := s.send(http.MethodGet, wait+"55", nil, "X-API-Key", greedy)
				if err == nil && bytes.Contains(res.body, []byte(`"busy"`)) {
					continue // a question below had the place
				}
				answers[i] <- res
				return
			}
		}()
	}
	because := func(key string) any {
		t.Helper()
		return waited(s.do(http.MethodGet, wait+"0", nil, "X-API-Key", key))["because"]
	}
	for because(greedy) != "busy" {
		select {
		case <-deadline:
			t.Fatal("one client waits as often as it likes")
		case <-time.After(5 * time.Millisecond):
		}
	}
	if got := because(other); got != "timeout" {
		t.Errorf("the other's wait: %v", got)
	}
	s.broadcast(out.Results[0].TxHash)
	s.mined(out.Results[0].TxHash)
	for _, answer := range answers {
		if got := waited(<-answer); got["reached"] != true {
			t.Errorf("waited: %v", got)
		}
	}
}

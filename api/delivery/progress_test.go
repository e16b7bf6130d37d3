package delivery

import (
	"net/http"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
)

// While one client's lists wait for places, others' requests are answered: of the lists that
// wait at most listQueue, and no more than the client's share of the connections.
func TestListsInLineKeepNobodyOut(t *testing.T) {
	const running = listShare
	// Fewer connections than the server takes: beyond that it may close late connections.
	for name, c := range map[string]struct{ all, connections, wait int }{
		"by connections": {90, 100, 25},
		"by lists":       {110, 400, listQueue},
	} {
		t.Run(name, func(t *testing.T) {
			keys, lists := newRing(t), rest.NewLists()
			s := newStack(t, keys.config, func(on *Config) {
				on.Rates.Key = rest.Rate{PerSecond: 1000, Burst: 10_000}
				on.Limits.Connections, on.Limits.WorkTimeout, on.Limits.WriteTimeout = c.connections, time.Hour, 2*time.Hour
				on.Lists = lists
			})
			greedy, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Client: "greedy"})
			other, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Client: "other"})
			var leave [running]func()
			for i := range leave {
				var err error
				if leave[i], err = lists.Enter(t.Context(), rest.HolderOf("greedy")); err != nil {
					t.Fatal(err)
				}
			}
			answers := make(chan response, c.all)
			for range c.all {
				go func() {
					res, _ := s.send(http.MethodGet, "/v1/transactions", nil, "X-API-Key", greedy, "Connection", "close")
					answers <- res
				}()
			}
			deadline := time.After(3 * patience)
			next := func() response {
				select {
				case res := <-answers:
					return res
				case <-deadline:
					t.Fatal("one client's lists wait on more connections than its share")
				}
				return response{}
			}
			for range c.all - c.wait {
				res := next()
				wantProblem(t, "one list too many", res, http.StatusTooManyRequests, rest.ErrRateLimited)
				if res.header.Get("Retry-After") != "1" {
					t.Errorf("Retry-After %q", res.header.Get("Retry-After"))
				}
			}
			if res := s.do(http.MethodGet, "/v1/transactions", nil, "X-API-Key", other, "Connection", "close"); res.status != http.StatusOK {
				t.Error(res)
			}
			for _, leave := range leave {
				leave()
			}
			for range c.wait {
				if res := next(); res.status != http.StatusOK {
					t.Error(res)
				}
			}
		})
	}
}

package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	hooks "github.com/tempo-watchtower/watchtower/infra/webhook"
)

// Requests of one client whose webhooks' name servers are slow hold a quarter of the connections,
// and eight of them look a name up at once.
func TestSlowNamesKeepNobodyOut(t *testing.T) {
	const connections, share, lookUps, all = 100, 25, 8, 90
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		var now, most atomic.Int64
		answer := make(chan struct{}) // closed: the name server answers
		s := open(func(c *Config) {
			guard, err := hooks.NewGuard(hooks.Rules{Lookup: func(ctx context.Context, _ string) ([]netip.Addr, error) {
				n := now.Add(1)
				defer now.Add(-1)
				for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
				}
				select {
				case <-answer:
					return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}})
			check(t, err)
			c.API.Limits.Connections, c.API.Rates.Address = connections, rest.Rate{PerSecond: 1000, Burst: 1000}
			c.Intake.Webhooks = intake.NewWebhookChecks(guard)
			c.Webhooks = &Webhooks{Rows: nobody{}, Endpoint: notice.EndpointOf, Secrets: func(notice.EndpointID) []string { return nil }}
		})
		answers := make(chan response, all)
		for i := range all {
			go func() {
				res, _ := s.send(http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url": "https://slow-%d.example.com/x"}`, i))
				answers <- res
			}()
		}
		refused := 0
		for i := range all {
			if i == all-share { // the others wait for the name server, or no longer do
				close(answer)
			}
			res := <-answers
			switch res.status {
			case http.StatusOK, http.StatusServiceUnavailable:
			case http.StatusTooManyRequests:
				var p rest.Problem
				check(t, json.Unmarshal(res.body, &p))
				if p.Code != string(rest.ErrRateLimited) || res.header.Get("Retry-After") != "1" {
					t.Errorf("Retry-After %q, %s", res.header.Get("Retry-After"), res.body)
				}
				refused++
			default:
				t.Errorf("answered %d %s", res.status, res.body)
			}
		}
		if most.Load() > lookUps || refused == 0 {
			t.Errorf("%d names were looked up at once, want %d at most; %d requests were refused", most.Load(), lookUps, refused)
		}
	})
}

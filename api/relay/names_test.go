package relay

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	hooks "github.com/tempo-watchtower/watchtower/infra/webhook"
)

// If DNS fails, a webhook's name is not judged: the request may be retried, and is accepted
// then. A name that does not exist is the client's fault.
func TestNamesThatCannotBeLookedUp(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		var trouble atomic.Pointer[net.DNSError]
		s := open(func(c *Config) {
			guard, err := hooks.NewGuard(hooks.Rules{Lookup: func(context.Context, string) ([]netip.Addr, error) {
				if failed := trouble.Load(); failed != nil {
					return nil, failed
				}
				return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
			}})
			check(t, err)
			c.Intake.Webhooks = intake.NewWebhookChecks(guard)
			c.Webhooks = &Webhooks{Rows: nobody{}, Endpoint: notice.EndpointOf, Secrets: func(notice.EndpointID) []string { return nil }}
		})
		const wish = `{"chainId": 42431, "key": "hooked", "pool": "hot", "to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", "webhooks": ["https://hooks.example.com/secret"]}`
		const hook = `{"url": "https://hooks.example.com/secret"}`
		for _, failed := range []*net.DNSError{
			{Err: "server misbehaving", Name: "hooks.example.com", IsTemporary: true},
			{Err: "i/o timeout", Name: "hooks.example.com", IsTimeout: true},
		} {
			trouble.Store(failed)
			for path, body := range map[string]string{"/v1/intents": wish, "/v1/webhooks": hook} {
				res := s.do(http.MethodPost, path, body)
				s.problem(res, http.StatusServiceUnavailable, "unavailable")
				if res.header.Get("Retry-After") == "" {
					t.Error("it does not say when to come back")
				}
			}
		}
		trouble.Store(&net.DNSError{Err: "no such host", Name: "hooks.example.com", IsNotFound: true})
		s.problem(s.do(http.MethodPost, "/v1/intents", wish), http.StatusUnprocessableEntity, "webhook-url")
		s.problem(s.do(http.MethodPost, "/v1/webhooks", hook), http.StatusUnprocessableEntity, "webhook-url")
		trouble.Store(nil)
		if res := s.do(http.MethodPost, "/v1/intents", wish); res.status != http.StatusAccepted {
			t.Errorf("answered %d %s", res.status, res.body)
		}
	})
}

// nobody is a queue without endpoints.
type nobody struct{}

func (nobody) Endpoint(context.Context, notice.EndpointID) (e notice.Endpoint, known bool, err error) {
	return e, false, nil
}

func (nobody) Endpoints(context.Context, *string, notice.EndpointID, int) ([]notice.Endpoint, error) {
	return nil, nil
}

func (nobody) Count(context.Context, notice.EndpointID, notice.Stage, int) (int, error) {
	return 0, nil
}

func (nobody) Dead(context.Context, notice.EndpointID, notice.Key, int) ([]notice.Notice, error) {
	return nil, nil
}

package delivery

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/request"
)

// claiming records the clients whose requests are claimed.
type claiming struct {
	rest.Requests
	clients []string
}

func (c *claiming) Claim(ctx context.Context, claim request.Claim) (request.Stage, request.Answer, error) {
	c.clients = append(c.clients, claim.Client)
	return c.Requests.Claim(ctx, claim)
}

// Attack 15: many keys of one client have one share of the remembered requests.
func TestRememberedRequestsAreCountedByClient(t *testing.T) {
	keys := newRing(t)
	claims := &claiming{Requests: newStack(t).db.Requests()}
	s := newStack(t, keys.config, func(c *Config) {
		c.Idempotency = rest.Idempotency{Requests: claims, Keep: time.Hour, Hold: time.Minute}
	})
	for range 2 {
		token, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Submit}, Client: "shop"})
		s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, signed(t, newKey(t), testChain, 0)), "X-API-Key", token, "Idempotency-Key", "a")
	}
	if len(claims.clients) != 2 || claims.clients[0] != "shop" || claims.clients[1] != "shop" {
		t.Errorf("the requests are remembered as those of %q", claims.clients)
	}
}

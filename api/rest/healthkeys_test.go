package rest

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// Attack 15: a stranger learns from /health which nodes are used and how far each is. Once keys
// exist, this part needs a key that can read. The rest of /health and its status stay public.
func TestHealthShowsNoNodesWithoutAKey(t *testing.T) {
	keys := newRing(t)
	stuck := false
	change := func(c *Config) {
		c.Health.Endpoints = func() []Endpoint {
			return []Endpoint{{Chain: testChain, Name: "a", State: "healthy", Breaker: "closed"}}
		}
		c.Health.Heads = func() []Head { return []Head{{Chain: testChain, Head: 9}} }
		c.Health.Readers = func(context.Context) ([]Reader, error) {
			r := Reader{Name: "transactions"}
			if stuck {
				r.Problem = "an event"
			}
			return []Reader{r}, nil
		}
	}
	s := newStack(t, keys.config, change)
	shown := func(s *stack, header ...string) (members []string) {
		t.Helper()
		var got object
		res := s.do(http.MethodGet, "/health", nil, header...)
		unmarshal(t, res.body, &got)
		for _, member := range []string{"endpoints", "heads", "readers"} {
			if got[member] != nil {
				members = append(members, member)
			}
		}
		for _, member := range []string{"status", "service", "version", "now", "chains", "rpcEndpoints", "scheduler", "dependencies"} {
			if got[member] == nil {
				t.Errorf("/health lacks %s", member)
			}
		}
		if (res.status == http.StatusOK) == stuck {
			t.Errorf("/health answers %d", res.status)
		}
		return members
	}
	all := []string{"endpoints", "heads", "readers"}
	want := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s is shown %v, want %v", what, got, want)
		}
	}
	want("everybody, before there is a key,", shown(s), all)
	reads, submits := keys.Scoped(access.Read), keys.Scoped(access.Submit)
	guess := reads[:len(reads)-1] + "0"
	if guess == reads {
		guess = reads[:len(reads)-1] + "1"
	}
	want("a stranger", shown(s), nil)
	want("a guess", shown(s, "X-API-Key", guess), nil)
	want("a key that reads", shown(s, "X-API-Key", reads), all)
	want("an auditor", shown(s, "X-API-Key", keys.Scoped(access.Audit)), all)
	want("a key that submits", shown(s, "X-API-Key", submits), nil)
	open := newStack(t, keys.config, change, func(c *Config) { c.Access.Open = true })
	want("everybody, of an open service,", shown(open), all)
	stuck = true
	s.elapse(checkFor)
	want("a stranger, of a service that is stuck,", shown(s), nil)
	stuck = false
	s.elapse(time.Hour)
	expired, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, ExpiresAt: uint64(testTime.Unix()) + 60})
	want("an expired key", shown(s, "X-API-Key", expired), nil)
}

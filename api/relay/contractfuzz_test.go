package relay

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	contracts "github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/contractfuzz"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// No request that the contract describes, or almost describes, gets an answer that it does not.
func TestContractFuzz(t *testing.T) {
	c, err := contractfuzz.Parse(contractYAML)
	check(t, err)
	h := newHooked(t)
	token := h.token("shop", access.Submit, access.Read, access.Cancel, access.Admin, access.Audit)
	header := http.Header{"X-API-Key": {token}}
	life := into[shown](t, h.do(http.MethodPost, "/v1/intents", fmt.Sprintf(whole, "life"), "X-API-Key", token), http.StatusAccepted)
	h.command(life.ID, assign(), attempted(1), seen(1, true))
	h.project()
	h.feed()
	contractfuzz.Check(t, c, contractfuzz.Target{
		Base: "http://" + h.addr, Header: header, Known: map[string][]any{
			"chainId": {"42431", "eip155:42431"}, "url": {hookURL}, "webhooks": {hookURL}, "pool": {"hot"}, "signer": {chain.Address{1}.String()},
		},
		Between: func(n int) {
			if n%100 == 99 {
				h.project()
				h.feed()
			}
		},
	})
}

// Nor does a request to the operators' API of the relayer, which has the routes of delivery's too.
func TestOperatorsContractFuzz(t *testing.T) {
	c, err := contractfuzz.Parse(contracts.Operators())
	check(t, err)
	s, _ := operators(t)
	now := func() time.Time { return epoch }
	db, err := embedded.Open("", embedded.Options{Now: now})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	config := s.config.API
	config.Admin.Keys = commands.Keys{AccessKeys: commands.AccessKeys{Store: db.Log(), Codec: access.Codec(), Random: rand.Reader}, Now: now}
	config.Admin.Drain, config.Admin.Level, config.Admin.Profiles, config.Admin.Contract = func() {}, new(slog.LevelVar), true, contracts.Operators()
	s.serve(rest.Internal(config, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprintln(w, "up 1")
	})))
	contractfuzz.Check(t, c, contractfuzz.Target{
		Base: "http://" + s.addr, Header: http.Header{}, Known: map[string][]any{
			"chain": {"42431", "eip155:42431"}, "chainId": {"42431"}, "address": {alice.String()}, "profile": {"heap", "goroutine", "nosuch"}, "seconds": {"1"},
		},
	})
}

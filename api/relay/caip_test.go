package relay

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A chain is named by its number or by CAIP-2; both are the same request.
func TestChainsByCAIP2(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		body := fmt.Sprintf(plain, "caip")
		named := func(name string) string { return strings.Replace(body, "42431", name, 1) }
		made := into[shown](t, s.do(http.MethodPost, "/v1/intents", named(`"eip155:42431"`)), http.StatusAccepted)
		again := into[shown](t, s.do(http.MethodPost, "/v1/intents", body), http.StatusAccepted)
		if made.ID != again.ID || !*again.AlreadyKnown || made.ChainID != testChain {
			t.Errorf("%+v, then %+v", made, again)
		}
		s.project()
		for _, name := range []string{"42431", "eip155:42431", "eip155%3A42431"} {
			if got := into[page](t, s.do(http.MethodGet, "/v1/intents?chainId="+name, ""), http.StatusOK).Intents; len(got) != 1 {
				t.Errorf("%s lists %v", name, got)
			}
		}
		s.problem(s.do(http.MethodPost, "/v1/intents", named(`"near:testnet"`)), 422, "unsupported-chain")
		s.problem(s.do(http.MethodPost, "/v1/intents", strings.Replace(named(`"eip155:7"`), `"caip"`, `"caip-2"`, 1)), 422, "unsupported-chain")
		s.problem(s.do(http.MethodPost, "/v1/intents", named(`"near"`)), 400, "invalid-request")
		s.problem(s.do(http.MethodGet, "/v1/intents?chainId=near:testnet", ""), 400, "invalid-filter")
		s.problem(s.do(http.MethodGet, "/v1/intents?chainId=eip155:x", ""), 400, "invalid-filter")
	})
}

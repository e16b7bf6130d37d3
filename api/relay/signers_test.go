package relay

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// A key that names signers or pools requests intents for these alone. In a list, the other intents are
// refused at their places. The answer does not tell whether such a signer or pool exists.
func TestKeysOfSigners(t *testing.T) {
	h := newHooked(t)
	alice, bob := chain.Address{1}, chain.Address{2}
	scopes := []access.Scope{access.Submit, access.Read}
	any := h.create(access.Key{Name: "any", Client: "shop", Scopes: scopes})
	signer := h.create(access.Key{Name: "signer", Client: "shop", Scopes: scopes, Signers: []chain.Address{alice}})
	pool := h.create(access.Key{Name: "pool", Client: "shop", Scopes: scopes, Pools: []string{"hot"}})
	n := 0
	wish := func(from string) string {
		n++
		return fmt.Sprintf(`{"chainId": 42431, "key": "key-%d", %s, "to": "0x0900000000000000000000000000000000000000"}`, n, from)
	}
	ofAlice, ofBob := fmt.Sprintf(`"signer": %q`, alice), fmt.Sprintf(`"signer": %q`, bob)
	for name, c := range map[string]struct {
		key, from string
		refused   bool
	}{
		"any, a signer":       {any, ofBob, false},
		"any, a pool":         {any, `"pool": "cold"`, false},
		"its signer":          {signer, ofAlice, false},
		"another signer":      {signer, ofBob, true},
		"a pool":              {signer, `"pool": "hot"`, true},
		"its pool":            {pool, `"pool": "hot"`, false},
		"another pool":        {pool, `"pool": "cold"`, true},
		"a signer, by a pool": {pool, ofAlice, true},
		"no such pool":        {pool, `"pool": "nosuch"`, true},
	} {
		res := h.do(http.MethodPost, "/v1/intents", wish(c.from), "X-API-Key", c.key)
		if c.refused {
			h.problem(res, http.StatusForbidden, "foreign-signer")
		} else if res.status != http.StatusAccepted {
			t.Errorf("%s: %d %s", name, res.status, res.body)
		}
	}
	head, err := h.db.Log().Head(t.Context())
	check(t, err)
	res := h.do(http.MethodPost, "/v1/intents", "["+wish(ofBob)+","+wish(ofAlice)+"]", "X-API-Key", signer)
	got := into[struct {
		Results []struct {
			OK      bool
			Problem struct{ Code string }
			Intent  struct{ Signer chain.Address }
		}
	}](t, res, http.StatusAccepted)
	if len(got.Results) != 2 || got.Results[0].OK || got.Results[0].Problem.Code != "foreign-signer" || !got.Results[1].OK || got.Results[1].Intent.Signer != alice {
		t.Errorf("a list: %s", res.body)
	}
	if now, err := h.db.Log().Head(t.Context()); err != nil || now != head+1 {
		t.Errorf("the list has recorded %d events, %v", now-head, err)
	}
}

package rpc

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// bank answers calls of one method by the account that they name, and passes other calls on.
func bank(node http.Handler, method string, answer func(params string) string, requests *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		type one struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		var all []one
		batch := json.Unmarshal(body, &all) == nil
		if !batch {
			all = make([]one, 1)
			_ = json.Unmarshal(body, &all[0]) // otherwise the node reports the error
		}
		if len(all) == 0 || all[0].Method != method {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			node.ServeHTTP(w, r)
			return
		}
		requests.Add(1)
		answers := make([]string, len(all))
		for i, c := range all {
			answers[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, c.ID, answer(string(c.Params)))
		}
		text := strings.Join(answers, ",")
		if batch {
			text = "[" + text + "]"
		}
		_, _ = io.WriteString(w, text)
	})
}

// Balances of the chain's currency, and of a token, take as few requests as possible.
func TestBalances(t *testing.T) {
	word := func(n string) string { return `"0x` + strings.Repeat("0", 64-len(n)) + n + `"` }
	have := func(all map[chain.Address]string, none string) func(string) string {
		return func(params string) string {
			for a, text := range all {
				if strings.Contains(params, a.String()[2:]) {
					return text
				}
			}
			return none
		}
	}
	token := chain.Address{0x20, 0xc0}
	for name, c := range map[string]struct {
		token  *chain.Address
		method string
		answer func(string) string
	}{
		"its own money": {nil, "eth_getBalance", have(map[chain.Address]string{alice: `"0x10"`, bob: `"0xffffffffffffffffffff"`}, `"0x0"`)},
		"a token":       {&token, "eth_call", have(map[chain.Address]string{alice: word("10"), bob: word("ffffffffffffffffffff")}, word("0"))},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			r := open(t, nil, serve(t, bank(newChain(t, chaintest.Rules{}).Node("a"), c.method, c.answer, &requests))).Reader()
			of := []chain.Address{alice, bob, {3}}
			got, err := r.Balances(t.Context(), c.token, of)
			var texts []string
			for _, a := range got {
				texts = append(texts, a.String())
			}
			if diff := cmp.Diff([]string{"16", "1208925819614629174706175", "0"}, texts); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if n := requests.Swap(0); n != 1 {
				t.Errorf("%d requests for three", n)
			}
			many := make([]chain.Address, maxBatch+1)
			if got, err := r.Balances(t.Context(), c.token, many); err != nil || len(got) != len(many) {
				t.Errorf("%d balances of %d: %v", len(got), len(many), err)
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("%d requests for %d", n, len(many))
			}
		})
	}
}

// A malformed balance is an error.
func TestBalancesThatAreNone(t *testing.T) {
	for _, answer := range []string{`"0x"`, `null`, `17`, `"17"`, `"0x` + strings.Repeat("f", 65) + `"`, `"0x` + strings.Repeat("g", 64) + `"`} {
		var requests atomic.Int64
		r := open(t, nil, serve(t, bank(newChain(t, chaintest.Rules{}).Node("a"), "eth_getBalance", func(string) string { return answer }, &requests))).Reader()
		if got, err := r.Balances(t.Context(), nil, []chain.Address{alice}); err == nil {
			t.Errorf("%s is read as %v", answer, got)
		}
	}
}

package wallets

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/jsonrpc"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// bundle is the parameter of wallet_sendCalls for one call of alice.
func bundle(id chain.ID, more string) []string {
	return []string{fmt.Sprintf(`{"version":"2.0.0","chainId":"0x%x","from":%s,"atomicRequired":false,"calls":[{"to":%s,"value":"0x1"}]%s}`, uint64(id), quoted(alice), quoted(payee), more)}
}

func (s *stack) status(id string, header ...string) (status, answer) {
	s.t.Helper()
	a := s.call(onTempoPath, "wallet_getCallsStatus", []string{quoted(id)}, header...)
	var got status
	if a.Error == nil {
		check(s.t, json.Unmarshal(a.Result, &got))
	}
	return got, a
}

func (s *stack) idOf(a answer) string {
	s.t.Helper()
	var got struct{ ID string }
	if a.Error != nil {
		s.t.Fatalf("%+v", a.Error)
	}
	check(s.t, json.Unmarshal(a.Result, &got))
	return got.ID
}

// The id of calls is the idempotency key. Their status follows the intent, on a replica that did not
// accept them too, and other clients do not see them.
func TestCalls(t *testing.T) {
	s := newStack(t)
	shop := s.key(access.Key{Client: "shop", Scopes: []access.Scope{access.RPC, access.Submit}})
	bank := s.key(access.Key{Client: "bank", Scopes: []access.Scope{access.RPC, access.Submit}})
	own := []string{"X-API-Key", shop}
	send := func(more string) answer {
		return s.call(onTempoPath, "wallet_sendCalls", bundle(onTempo, more), own...)
	}
	if got := s.idOf(send(`,"id":"order-1"`)); got != "order-1" {
		t.Errorf("the id is %q", got)
	}
	if got := s.idOf(send(`,"id":"order-1","capabilities":{"paymaster":{"optional":true}}`)); got != "order-1" {
		t.Errorf("again the id is %q", got)
	}
	other := s.call(onTempoPath, "wallet_sendCalls", []string{strings.Replace(bundle(onTempo, `,"id":"order-1"`)[0], `"0x1"`, `"0x2"`, 1)}, own...)
	if other.code() != codeDuplicateID {
		t.Errorf("other calls under the id: %s %+v", other.Result, other.Error)
	}
	unnamed := s.idOf(send(""))
	if again := s.idOf(send("")); again != unnamed || unnamed == "order-1" || unnamed == "" {
		t.Errorf("without an id they are %q and %q", unnamed, again)
	}
	if n := len(s.all()); n != 2 {
		t.Fatalf("%d intents were made", n)
	}
	s.project()
	id := intent.ID("shop", intent.From{Signer: &alice}, "order-1")
	if got, a := s.status("order-1", own...); got.Status != statusPending || got.ID != "order-1" || got.ChainID != "0xa5bf" || got.Version != version || !got.Atomic {
		t.Errorf("at first: %+v %+v", got, a.Error)
	}
	for what, a := range map[string]answer{
		"another client":  s.call(onTempoPath, "wallet_getCallsStatus", []string{`"order-1"`}, "X-API-Key", bank),
		"another chain":   s.call(onOtherPath, "wallet_getCallsStatus", []string{`"order-1"`}, own...),
		"an unknown id":   s.call(onTempoPath, "wallet_getCallsStatus", []string{`"order-9"`}, own...),
		"shown to others": s.call(onTempoPath, "wallet_showCallsStatus", []string{`"order-1"`}, "X-API-Key", bank),
	} {
		if a.code() != codeUnknownID {
			t.Errorf("%s: %s %+v", what, a.Result, a.Error)
		}
	}
	if a := s.call(onTempoPath, "wallet_showCallsStatus", []string{`"order-1"`}, own...); string(a.Result) != "null" || a.Error != nil {
		t.Errorf("shown: %s %+v", a.Result, a.Error)
	}
	s.do(id, intent.Assign{Assignment: 1, Place: intent.Place{Signer: alice}, Token: 1, At: time.Now()}, intent.Attempt{Assignment: 1, Kind: intent.First, Hash: chain.Hash{4}, At: time.Now()})
	s.land(id, chain.Hash{4}, 1)
	got, a := s.status("order-1", own...)
	if got.Status != statusConfirmed || len(got.Receipts) != 1 || string(got.Receipts[0].TransactionHash) != quoted(chain.Hash{4}) {
		t.Errorf("mined: %+v %+v", got, a.Error)
	}
	var receipt map[string]any
	check(t, json.Unmarshal(a.Result, &struct{ Receipts []*map[string]any }{[]*map[string]any{&receipt}}))
	if len(receipt) != 6 {
		t.Errorf("the receipt has the members %v", receipt)
	}
	canceled := intent.ID("shop", intent.From{Signer: &alice}, unnamed)
	s.do(canceled, intent.Cancel{At: time.Now()})
	if got, a := s.status(unnamed, own...); got.Status != statusNotSent || len(got.Receipts) > 0 {
		t.Errorf("canceled: %+v %+v", got, a.Error)
	}
}

// Calls that reverted say so.
func TestRevertedCalls(t *testing.T) {
	s := newStack(t)
	s.idOf(s.call(onTempoPath, "wallet_sendCalls", bundle(onTempo, `,"id":"a"`)))
	id := intent.ID("", intent.From{Signer: &alice}, "a")
	s.do(id, intent.Assign{Assignment: 1, Place: intent.Place{Signer: alice}, Token: 1, At: time.Now()}, intent.Attempt{Assignment: 1, Kind: intent.First, Hash: chain.Hash{4}, At: time.Now()})
	s.land(id, chain.Hash{4}, 0)
	if got, a := s.status("a"); got.Status != statusReverted {
		t.Errorf("reverted: %+v %+v", got, a.Error)
	}
}

// What EIP-5792 lets a wallet refuse is refused by its codes, and leaves nothing behind.
func TestRefusedCalls(t *testing.T) {
	s := newStack(t)
	two := func(id chain.ID, atomic string) string {
		return strings.NewReplacer(`"atomicRequired":false`, `"atomicRequired":`+atomic, `"calls":[`, `"calls":[{"to":`+quoted(bob)+`},`).Replace(bundle(id, "")[0])
	}
	for name, c := range map[string]struct {
		path, calls string
		code        int
	}{
		"atomic, without atomic calls": {onOtherPath, strings.Replace(bundle(onOther, "")[0], `:false`, `:true`, 1), codeNotAtomic},
		"two atomic calls":             {onOtherPath, two(onOther, "true"), codeNotAtomic},
		"two calls":                    {onOtherPath, two(onOther, "false"), codeTooManyCalls},
		"too many calls":               {onTempoPath, strings.Replace(bundle(onTempo, "")[0], `"calls":[`, `"calls":[`+strings.Repeat(`{},`, intent.CallsMax), 1), codeTooManyCalls},
		"no call":                      {onTempoPath, strings.Replace(bundle(onTempo, "")[0], `{"to":`+quoted(payee)+`,"value":"0x1"}`, ``, 1), jsonrpc.CodeInvalidParams},
		"another chain":                {onTempoPath, bundle(onOther, "")[0], codeUnsupportedChain},
		"a capability":                 {onTempoPath, bundle(onTempo, `,"capabilities":{"paymaster":{}}`)[0], codeCapability},
		"a capability of a call":       {onTempoPath, strings.Replace(bundle(onTempo, "")[0], `"value":"0x1"`, `"capabilities":{"gas":{}}`, 1), codeCapability},
		"another version":              {onTempoPath, strings.Replace(bundle(onTempo, "")[0], `2.0.0`, `3.0`, 1), jsonrpc.CodeInvalidParams},
		"another's account":            {onTempoPath, strings.Replace(bundle(onTempo, "")[0], quoted(alice), quoted(chain.Address{3}), 1), codeUnauthorized},
		"an unknown member":            {onTempoPath, bundle(onTempo, `,"gas":"0x1"`)[0], jsonrpc.CodeInvalidParams},
		"an empty id":                  {onTempoPath, bundle(onTempo, `,"id":""`)[0], jsonrpc.CodeInvalidParams},
	} {
		if a := s.call(c.path, "wallet_sendCalls", []string{c.calls}); a.code() != c.code {
			t.Errorf("%s: %s %+v, want %d", name, a.Result, a.Error, c.code)
		}
	}
	if made := s.all(); len(made) > 0 {
		t.Errorf("intents were made: %v", made)
	}
	if a := s.call(onTempoPath, "wallet_sendCalls", []string{two(onTempo, "true")}); a.Error != nil {
		t.Errorf("two atomic calls on a chain that has them: %+v", a.Error)
	}
}

// Capabilities are those of the chain of the URL, for the accounts of the key.
func TestCapabilities(t *testing.T) {
	s := newStack(t)
	for name, c := range map[string]struct {
		path   string
		params []string
		want   string
	}{
		"of Tempo":          {onTempoPath, []string{quoted(alice)}, `{"0xa5bf":{"atomic":{"status":"supported"}}}`},
		"of Ethereum":       {onOtherPath, []string{quoted(alice), `["0x1","0x7a69"]`}, `{"0x7a69":{"atomic":{"status":"unsupported"}}}`},
		"of other chains":   {onTempoPath, []string{quoted(alice), `["0x1"]`}, `{}`},
		"of no account":     {onTempoPath, []string{"null"}, ""},
		"of another's":      {onTempoPath, []string{quoted(payee)}, ""},
		"of something else": {onTempoPath, []string{quoted(alice), `"0x1"`}, ""},
	} {
		if a := s.call(c.path, "wallet_getCapabilities", c.params); string(a.Result) != c.want || (a.Error == nil) != (c.want != "") {
			t.Errorf("%s: %s %+v", name, a.Result, a.Error)
		}
	}
}

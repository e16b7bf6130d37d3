package relay

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	contracts "github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// operators serves the operators' routes, and returns the guard behind them.
func operators(t *testing.T) (*stack, *guard.Guard) {
	t.Helper()
	now := func() time.Time { return epoch }
	db, err := embedded.Open("", embedded.Options{Now: now})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	log := slog.New(slog.DiscardHandler)
	g := guard.New(guard.Config{
		Safeguards: guard.Safeguards{Store: db.Log(), Codec: safeguard.Codec(), Random: rand.Reader}, Signers: guard.Signers{Store: db.Log(), Codec: signer.Codec(), Random: rand.Reader},
		Budgets: guard.Budgets{Store: db.Log(), Codec: budget.Codec(), Random: rand.Reader}, Settings: guard.DefaultSettings(), Now: now, Log: log,
	})
	o := Operators{Guard: g, Chains: []chain.ID{testChain}, Signers: []chain.Address{alice}, Now: now, Mender: worker.Mender{
		Lanes: worker.Lanes{Store: db.Log(), Codec: lane.Codec(), Random: rand.Reader}, Intents: worker.Intents{Store: db.Log(), Codec: intent.Codec(), Random: rand.Reader}, Now: now,
	}}
	check(t, g.Register(t.Context(), testChain, alice, []string{"hot"}))
	s := &stack{t: t}
	s.config.API = rest.Config{
		Limits: rest.DefaultLimits(), CursorKey: make([]byte, rest.CursorKeyBytes), Now: now, Random: rand.Reader, Log: log,
		Admin: rest.Admin{Level: new(slog.LevelVar), Routes: o.Routes(), Kinds: o.Kinds()},
	}
	s.serve(rest.Internal(s.config.API, http.NotFoundHandler()))
	return s, g
}

var alice = chain.Address{0xa1}

// act sends a change, and returns the answer.
func (s *stack) act(method, path, body string) response {
	s.t.Helper()
	res, err := s.send(method, "/admin"+path, body)
	check(s.t, err)
	return res
}

// An operator's changes are shown, and take effect.
func TestOperates(t *testing.T) {
	s, g := operators(t)
	of := fmt.Sprintf("/signers/%d/%s", testChain, alice)
	budgets := fmt.Sprintf("/budgets/%d", testChain)
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/safeguards/halt", `{"scope": {"kind": "chain", "chain": 42431}, "reason": "fire"}`},
		{"POST", "/safeguards/halt", `{"scope": {"kind": "deployment"}, "reason": "fire"}`},
		{"POST", "/safeguards/resume", `{"scope": {"kind": "deployment"}, "reason": "it is out"}`},
		{"PUT", "/safeguards/targets", `{"scope": {"kind": "client", "client": "ann", "chain": 42431}, "targets": [{"to": "` + alice.String() + `", "selectors": ["0xa9059cbb"]}, {}], "reason": "as agreed"}`},
		{"PUT", "/safeguards/rate", `{"scope": {"kind": "each-client"}, "rate": {"perSecond": 5, "burst": 10}, "reason": "as agreed"}`},
		{"PUT", "/safeguards/rate", `{"scope": {"kind": "deployment"}, "rate": {"perSecond": 50, "burst": 100}, "reason": "as agreed"}`},
		{"PUT", "/safeguards/rate", `{"scope": {"kind": "deployment"}, "reason": "no longer"}`},
		{"PUT", budgets, `{"account": {"kind": "each-client"}, "fee": "1000", "value": "0", "reason": "as agreed"}`},
		{"PUT", budgets, `{"account": {"kind": "chain"}, "fee": "5000", "reason": "as agreed"}`},
		{"PUT", budgets, `{"account": {"kind": "signer", "signer": "` + alice.String() + `"}, "reason": "as agreed"}`},
		{"PUT", of + "/threshold", `{"threshold": "77", "reason": "as it takes"}`},
		{"PUT", of + "/targets", `{"targets": [{"to": "` + alice.String() + `"}], "reason": "as agreed"}`},
		{"POST", of + "/drain", `{"reason": "to rotate"}`},
		{"POST", of + "/resume", `{"reason": "it is well"}`},
		{"POST", of + "/pause", `{"reason": "to look"}`},
	} {
		if res := s.act(c.method, c.path, c.body); res.status != http.StatusOK {
			t.Errorf("%s %s: %d %s", c.method, c.path, res.status, res.body)
		}
	}
	shown := func(path string) string { return string(s.act("GET", path, "").body) }
	signerText := `{"chain":42431,"address":"` + alice.String() + `","status":"paused","pools":["hot"],"targets":[{"to":"` + alice.String() + `"}],` +
		`"actor":"operator","reason":"to look","since":"2027-01-15T08:00:00Z","threshold":"77","failures":0}`
	for path, want := range map[string]string{
		"/safeguards": `{"halts":[{"scope":{"kind":"chain","chain":42431},"actor":"operator","reason":"fire","since":"2027-01-15T08:00:00Z"}],` +
			`"targets":[{"scope":{"kind":"client","chain":42431,"client":"ann"},"targets":[{"to":"` + alice.String() + `","selectors":["0xa9059cbb"]},{}]}],` +
			`"rates":[{"scope":{"kind":"each-client"},"perSecond":5,"burst":10}]}`,
		budgets: `{"chain":42431,"day":"2027-01-15","used":{"fee":"0","value":"0"},"limits":[` +
			`{"account":{"kind":"chain"},"limit":{"fee":"5000"},"used":{"fee":"0","value":"0"}},{"account":{"kind":"each-client"},"limit":{"fee":"1000","value":"0"}}]}`,
		of:         signerText,
		"/signers": `{"signers":[` + signerText + `]}`,
	} {
		if diff := cmp.Diff(want, strings.TrimSpace(shown(path))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	state, err := g.Switches(t.Context())
	check(t, err)
	if state.CheckNoOp(testChain) == nil {
		t.Error("what was halted goes on")
	}
	// Each change is an event with actor and reason; a command without effect records none.
	head := 0
	for batch, err := range g.Signers.Store.ReadAll(t.Context(), 0, eventlog.Filter{}, 100) {
		check(t, err)
		for _, r := range batch.Events {
			head++
			if !strings.Contains(string(r.Data), `"actor":"`) || r.Version > 1 && !strings.Contains(string(r.Data), `"reason":"`) {
				t.Errorf("%s %s", r.Name, r.Data)
			}
		}
	}
	s.act("POST", of+"/pause", `{"reason": "again"}`)
	if now, err := g.Signers.Store.Head(t.Context()); err != nil || int(now) != head {
		t.Errorf("%d events, and then %d, %v", head, now, err)
	}
}

func TestOperatesWrongly(t *testing.T) {
	s, g := operators(t)
	lanes := fmt.Sprintf("/lanes/%d/%s", testChain, alice)
	of := fmt.Sprintf("/signers/%d/%s", testChain, alice)
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"POST", "/safeguards/halt", `{"scope": {"kind": "chain", "chain": 42431}}`, 400, "invalid-request"},
		{"POST", "/safeguards/halt", `{"scope": {"kind": "chain", "chain": 42431}, "reason": ""}`, 422, "invalid-safeguard"},
		{"POST", "/safeguards/halt", `{"scope": {"kind": "signer"}, "reason": "fire"}`, 422, "invalid-safeguard"},
		{"POST", "/safeguards/halt", `{"scope": {"kind": "deployment"}, "reason": "fire", "actor": "me"}`, 400, "invalid-request"},
		{"POST", "/safeguards/halt?now=1", `{"scope": {"kind": "deployment"}, "reason": "fire"}`, 400, "invalid-filter"},
		{"POST", "/safeguards/halt", ``, 400, "malformed-json"},
		{"GET", "/safeguards/halt", ``, 405, "method-not-allowed"},
		{"PUT", "/safeguards/targets", `{"scope": {"kind": "chain", "chain": 42431}, "targets": [{"selectors": ["0xa9"]}], "reason": "x"}`, 400, "invalid-request"},
		{"PUT", "/safeguards/targets", `{"scope": {"kind": "deployment"}, "targets": [], "reason": "x"}`, 422, "invalid-safeguard"},
		{"PUT", "/safeguards/rate", `{"scope": {"kind": "deployment"}, "rate": {"perSecond": 0, "burst": 1}, "reason": "x"}`, 422, "invalid-safeguard"},
		{"PUT", "/safeguards/rate", `{"scope": {"kind": "deployment"}, "rate": {"perSecond": 1, "burst": 18446744073709551615}, "reason": "x"}`, 422, "invalid-safeguard"},
		{"GET", "/budgets/1", ``, 422, "unsupported-chain"},
		{"PUT", "/budgets/01", `{}`, 422, "unsupported-chain"},
		{"PUT", "/budgets/42431", `{"account": {"kind": "everybody"}, "fee": "1", "reason": "x"}`, 422, "invalid-budget"},
		{"PUT", "/budgets/42431", `{"account": {"kind": "chain"}, "fee": 1, "reason": "x"}`, 400, "invalid-request"},
		{"GET", "/signers/42431/0x12", ``, 400, "invalid-address"},
		{"GET", fmt.Sprintf("/signers/42431/%s", chain.Address{9}), ``, 422, "unknown-signer"},
		{"POST", fmt.Sprintf("/signers/42431/%s/pause", chain.Address{9}), `{"reason": "x"}`, 422, "unknown-signer"},
		{"POST", of + "/pause", `{"reason": ""}`, 422, "invalid-signer"},
		{"PUT", of + "/targets", `{"targets": [], "reason": ""}`, 422, "invalid-signer"},
		{"PUT", of + "/threshold", `{"threshold": "-1", "reason": "x"}`, 400, "invalid-request"},
		{"POST", of + "/stop", `{"reason": "x"}`, 404, "not-found"},
		{"POST", lanes + "/0x0/fill", `{"nonces": [1], "reason": "x"}`, 404, "unknown-lane"},
		{"POST", lanes + "/0x0/fill", `{"nonces": [1], "reason": ""}`, 422, "invalid-signer"},
		{"POST", lanes + "/0x0/fill", `{"nonces": ["1"], "reason": "x"}`, 400, "invalid-request"},
		{"POST", lanes + "/key/fill", `{"nonces": [1], "reason": "x"}`, 400, "invalid-filter"},
		{"POST", "/lanes/1/" + alice.String() + "/0x0/fill", `{"nonces": [1], "reason": "x"}`, 422, "unsupported-chain"},
	} {
		s.problem(s.act(c.method, c.path, c.body), c.status, c.code)
	}
	if head, err := g.Signers.Store.Head(t.Context()); err != nil || head != 1 {
		t.Errorf("the log is at %d, %v", head, err)
	}
	res, err := s.send("POST", "/admin/safeguards/halt", `{"scope": {"kind": "deployment"}, "reason": "fire"}`, "Content-Type", "text/plain")
	check(t, err)
	s.problem(res, http.StatusUnsupportedMediaType, "unsupported-media-type")
	// A page's script is refused.
	res, err = s.send("POST", "/admin/safeguards/halt", `{"scope": {"kind": "deployment"}, "reason": "fire"}`, "Origin", "http://evil.example")
	check(t, err)
	s.problem(res, http.StatusForbidden, "origin-not-allowed")
}

// The operators' contract has the relay's routes with their scopes, and no others beside those of all
// programs. TestOperatorsContractIsServed of package rest holds it to these.
func TestOperatorsContractNamesEveryRoute(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(contracts.Operators())
	check(t, err)
	var promised, served []string
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if tag := operation.Tags[0]; tag == "safeguards" || tag == "signers" {
				promised = append(promised, fmt.Sprint(method, " ", path, " ", operation.Extensions["x-scope"]))
			}
		}
	}
	for _, r := range (Operators{}).Routes() {
		served = append(served, fmt.Sprint(r.Method, " ", r.Path, " ", r.Scope))
	}
	slices.Sort(promised)
	slices.Sort(served)
	if d := cmp.Diff(promised, served); d != "" {
		t.Errorf("operators.yaml (-) and the router (+) differ:\n%s", d)
	}
}

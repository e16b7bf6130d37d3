package relay

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// asker is a key, and its rights to ann's intent and webhook.
type asker struct {
	name, token    string
	reads, changes bool
	bound          bool // to a sender, and intents name none
	scopes         []access.Scope
}

// probed is a route's request about ann's intent or webhook.
type probed struct {
	target, body string
	missing      string // problem code for clients that may not see it; empty: 200 without it
	names        string // text that only the answer to a client that may see it contains
	stays        bool   // the route shows nothing of ann's to any client
	open         bool   // the route belongs to no client
}

func (h *hooked) probesOf(id chain.IntentID, to notice.EndpointID) map[string]probed {
	in, hook := "/v1/intents/"+id.String(), "/v1/webhooks/"+to.String()
	given := `{"url": "` + hookURL + `"}`
	unknown, none := "unknown-intent", "unknown-webhook"
	return map[string]probed{
		"POST /v1/intents":                       {target: "/v1/intents", body: fmt.Sprintf(whole, "of-ann"), stays: true},
		"GET /v1/intents":                        {target: "/v1/intents", names: id.String()},
		"GET /v1/intents/{id}":                   {target: in, missing: unknown, names: id.String()},
		"GET /v1/intents/{id}/events":            {target: in + "/events", missing: unknown, names: "TxAccepted"},
		"POST /v1/intents/{id}/cancel":           {target: in + "/cancel", body: `{}`, missing: unknown, names: id.String()},
		"POST /v1/intents/{id}/speed-up":         {target: in + "/speed-up", body: `{"feePerGas": "20000000000"}`, missing: unknown, names: id.String()},
		"GET /v1/events":                         {target: "/v1/events?after=0&until=head", names: id.String()},
		"GET /v1/webhooks":                       {target: "/v1/webhooks", names: to.String()},
		"POST /v1/webhooks":                      {target: "/v1/webhooks", body: given, stays: true},
		"POST /v1/webhooks/try":                  {target: "/v1/webhooks/try", body: given, stays: true},
		"GET /v1/webhooks/{endpoint}":            {target: hook, missing: none, names: to.String()},
		"GET /v1/webhooks/{endpoint}/dead":       {target: hook + "/dead", missing: none, names: id.String()},
		"POST /v1/webhooks/{endpoint}/redeliver": {target: hook + "/redeliver", missing: none, names: to.String()},
		"POST /v1/webhooks/{endpoint}/enable":    {target: hook + "/enable", missing: none, names: to.String()},
		"POST /v1/webhooks/{endpoint}/disable":   {target: hook + "/disable", missing: none, names: to.String()},
		"GET /v1/signers":                        {target: "/v1/signers", names: `"assigned":7`},
		"GET /v1/signers/{address}":              {target: "/v1/signers/" + annie.String(), names: `"assigned":7`},
		"GET /v1/lanes":                          {target: "/v1/lanes", names: `"assigned":7`},
		"GET " + laneRoute:                       {target: annieLane, names: `"assigned":7`},
		"GET " + laneRoute + "/diagnosis":        {target: annieLane + "/diagnosis", names: `"well"`},
		"GET /openapi.yaml":                      {target: "/openapi.yaml", open: true},
	}
}

// On every route, an intent and a webhook exist only for their client and for auditors, and an
// unmined intent's input for its client alone. A new route without an entry fails here.
func TestOwnedOnEveryRoute(t *testing.T) {
	clients := []access.Scope{access.Submit, access.Read, access.Cancel}
	for _, a := range []asker{
		{name: "bob", scopes: clients},
		{name: "a key bound to a sender", scopes: access.Scopes(), bound: true},
		{name: "an auditor", scopes: []access.Scope{access.Audit}, reads: true},
		{name: "an auditor with all but admin", scopes: append([]access.Scope{access.Audit}, clients...), reads: true},
		{name: "ann", scopes: clients, reads: true, changes: true},
		{name: "an operator", scopes: access.Scopes(), reads: true, changes: true},
	} {
		h := newHooked(t)
		ann := h.token("ann", clients...)
		made := into[shown](t, h.do(http.MethodPost, "/v1/intents", fmt.Sprintf(whole, "of-ann"), "X-API-Key", ann), http.StatusAccepted)
		h.command(made.ID, assign(), attempted(1))
		h.openLane(laneOf(annie))
		h.project()
		h.feed()
		h.answer(notice.Outcome{Class: notice.Gone, Cause: notice.Status, Status: 410})

		k := access.Key{Name: a.name, Client: strings.ReplaceAll(a.name, " ", "-"), Scopes: a.scopes}
		if a.bound {
			k.Senders = []chain.Address{{1}}
		}
		a.token = h.create(k)
		probes := h.probesOf(made.ID, h.config.Webhooks.Endpoint("ann", hookURL))
		for _, r := range (&desk{Config: h.config}).routes() {
			name := r.Method + " " + r.Path
			p, there := probes[name]
			if !there {
				t.Errorf("%s: nobody has said how it keeps a client to its own", name)
				continue
			}
			t.Run(name+" by "+a.name, func(t *testing.T) { h.probe(t, r.Method, r.Scope, p, a) })
		}
	}
}

func (h *hooked) probe(t *testing.T, method string, scope access.Scope, p probed, a asker) {
	if p.open {
		return
	}
	res, err := h.send(method, p.target, p.body, "X-API-Key", a.token)
	check(t, err)
	reach := a.changes
	if scope == access.Read || scope == access.Audit {
		reach = a.reads
	}
	said := string(res.body)
	switch scoped := (access.Key{Scopes: a.scopes}).Opens(scope); {
	case !scoped || a.bound:
		if res.status != http.StatusForbidden {
			t.Errorf("it answers %d %s, though the key may not", res.status, said)
		}
	case p.stays:
		if res.status >= http.StatusMultipleChoices {
			t.Errorf("it answers %d %s", res.status, said)
		}
	case !reach && p.missing != "":
		if res.status != http.StatusNotFound || !strings.Contains(said, `"code":"`+p.missing+`"`) {
			t.Errorf("it answers %d %s, want 404 %s", res.status, said, p.missing)
		}
	case res.status == http.StatusConflict && reach:
		// The conflict with its state is reported only to clients that may see it.
	case res.status >= http.StatusMultipleChoices || strings.Contains(said, p.names) != reach:
		t.Errorf("reached: %t; it answers %d %s", reach, res.status, said)
	}
	if a.name != "ann" && !p.stays && strings.Contains(said, "cafe") {
		t.Errorf("it shows the input of a call that no node may have seen: %s", said)
	}
	if a.name == "ann" || reach && !p.stays {
		return
	}
	for _, secret := range []string{p.names, `"client":"ann"`} {
		if secret != "" && !strings.Contains(p.target, secret) && strings.Contains(said, secret) {
			t.Errorf("it says %s: %s", secret, said)
		}
	}
}

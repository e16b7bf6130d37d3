package relay

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The contract names every query parameter of a route, and no other.
func TestContractNamesEveryParameter(t *testing.T) {
	c, err := contract()
	check(t, err)
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open(func(c *Config) { c.Webhooks = &Webhooks{} }) // no request gets far enough to use them
		for _, r := range (&desk{Config: s.config}).routes() {
			if r.Scope == rest.Public {
				continue
			}
			var promised []string
			for _, p := range c.doc.Paths.Value(r.Path).GetOperation(r.Method).Parameters {
				if p.Value.In == "query" {
					promised = append(promised, p.Value.Name)
				}
			}
			body := ""
			if r.Method == http.MethodPost {
				body = "{}"
			}
			target := strings.NewReplacer("{id}", chain.IntentID{1}.String(), "{endpoint}", notice.EndpointID{1}.String(), "{chain}", "1", "{address}", chain.Address{1}.String(), "{nonceKey}", "0x0").Replace(r.Path)
			res := s.do(r.Method, target+"?nosuch=1", body)
			p := into[rest.Problem](t, res, http.StatusBadRequest)
			_, names, _ := strings.Cut(p.Detail, "only: ")
			var taken []string
			if names != "" {
				taken = strings.Split(names, ", ")
			}
			slices.Sort(promised)
			slices.Sort(taken)
			if d := cmp.Diff(promised, taken); d != "" || p.Code != "invalid-filter" {
				t.Errorf("%s %s: the contract (-) and what is taken (+) differ, %s:\n%s", r.Method, r.Path, p.Code, d)
			}
		}
	})
}

// docs/reference/relayer.md documents every code.
func TestProblemsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/relayer.md")
	check(t, err)
	var documented, table []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([0-9]+) \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1]+" "+row[2]+" "+resttest.Unlinked(row[3]))
	}
	for _, k := range (Operators{}).Kinds() {
		table = append(table, fmt.Sprintf("%s %d %s", k.Code, k.Status, k.Meaning))
	}
	if d := cmp.Diff(documented, table); d != "" {
		t.Errorf("docs/reference/relayer.md (-) and the table (+) differ:\n%s", d)
	}
}

// The contract is valid OpenAPI, and has every route with its scope, and every code.
func TestContract(t *testing.T) {
	c, err := contract()
	check(t, err)
	check(t, c.doc.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableMultiError()))
	var promised, served []string
	for path, item := range c.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			scope, scoped := operation.Extensions["x-scope"]
			if !scoped {
				scope = rest.Public
			}
			promised = append(promised, fmt.Sprint(method, " ", path, " ", scope))
		}
	}
	config := rest.Config{CursorKey: make([]byte, rest.CursorKeyBytes), Limits: rest.DefaultLimits()}
	for _, r := range (&desk{Config: Config{RPC: func(rest.Request) error { return nil }}}).served(rest.NewFront(config, kinds()...)) {
		served = append(served, fmt.Sprint(r.Method, " ", r.Path, " ", r.Scope))
	}
	slices.Sort(promised)
	slices.Sort(served)
	if d := cmp.Diff(promised, served); d != "" {
		t.Errorf("openapi.yaml (-) and the router (+) differ:\n%s", d)
	}
	text := string(contractYAML)
	_, codes, _ := strings.Cut(text, "and of intents:")
	codes, _, _ = strings.Cut(codes, ".\n")
	var told, table []string
	for _, code := range strings.Split(strings.Join(strings.Fields(codes), ""), ",") {
		told = append(told, code)
	}
	seen := map[eventlog.Refusal]bool{}
	for _, k := range kinds() {
		table = append(table, string(k.Code))
		if seen[k.Code] || k.Title == "" || http.StatusText(k.Status) == "" {
			t.Errorf("%+v", k)
		}
		seen[k.Code] = true
	}
	if d := cmp.Diff(told, table); d != "" {
		t.Errorf("the codes in openapi.yaml (-) and the table (+) differ:\n%s", d)
	}
	var statuses []intent.Status
	for _, s := range c.doc.Components.Schemas["Status"].Value.Enum {
		statuses = append(statuses, intent.Status(s.(string)))
	}
	if d := cmp.Diff(statuses, intent.Statuses()); d != "" {
		t.Error(d)
	}
}

package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	contracts "github.com/tempo-watchtower/watchtower/api"
)

// The internal listener serves the part of the operators' contract that describes its routes, with
// their scopes, and the part is a contract by itself.
func TestOperatorsContractIsServed(t *testing.T) {
	for name, profiles := range map[string]bool{"with profiles": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			var served []string
			s, _, _ := operated(t, func(c *Config) {
				c.Admin.Contract, c.Admin.Profiles = contracts.Operators(), profiles
				a := newAPI(*c)
				others := append(a.adminRoutes(), route{method: http.MethodGet, path: "/metrics", scope: probing}, route{method: http.MethodGet, path: problemPath, scope: public})
				for _, r := range append(others, a.contractRoutes(others)...) {
					served = append(served, fmt.Sprint(r.method, " ", r.path, " ", strings.NewReplacer(string(probing), "", string(public), "").Replace(string(r.scope))))
				}
			})
			res := s.operate(http.MethodGet, "/openapi.yaml", "")
			doc, err := openapi3.NewLoader().LoadFromData(res.body)
			if err != nil {
				t.Fatal(err)
			}
			if err := doc.Validate(t.Context()); err != nil {
				t.Error(err)
			}
			var promised []string
			for path, item := range doc.Paths.Map() {
				for method, operation := range item.Operations() {
					scope, _ := operation.Extensions["x-scope"].(string)
					promised = append(promised, method+" "+path+" "+scope)
				}
			}
			slices.Sort(promised)
			slices.Sort(served)
			if d := cmp.Diff(promised, served); d != "" {
				t.Errorf("the contract (-) and the routes (+) differ:\n%s", d)
			}
			for _, tag := range doc.Tags {
				if tag.Name == "signers" || tag.Name == "safeguards" {
					t.Errorf("the tag %s has no operation here", tag.Name)
				}
			}
			for name := range doc.Components.Schemas {
				if !strings.Contains(string(res.body), "/schemas/"+name) {
					t.Errorf("the schema %s is not used", name)
				}
			}
			for _, target := range []string{"/openapi.json", "/docs"} {
				if res := s.operate(http.MethodGet, target, ""); res.status != http.StatusOK {
					t.Errorf("%s answered %d %s", target, res.status, res.body)
				}
			}
		})
	}
}

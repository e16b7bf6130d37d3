package delivery

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
)

// The contract names every query parameter of a route, and no other.
func TestContractNamesEveryParameter(t *testing.T) {
	s := newStack(t)
	doc := contract(t)
	named := 0
	for _, route := range allRoutes(s.config) {
		name := route.Method + " " + route.Path
		var promised []string
		list, _ := at(t, doc, "paths", route.Path, strings.ToLower(route.Method))["parameters"].([]any)
		for _, p := range list {
			if p := follow(t, doc, p.(object)); p["in"] == "query" {
				promised = append(promised, p["name"].(string))
			}
		}
		target := strings.NewReplacer(
			"{hash}", "0x"+strings.Repeat("12", 32), "{sender}", "0x"+strings.Repeat("12", 20),
			"{groupId}", "0x"+strings.Repeat("12", 16), "{chainId}", "42431",
		).Replace(route.Path)
		var body []byte
		if route.Method == http.MethodPost {
			body = []byte("{}")
		}
		res, err := s.send(route.Method, target+"?nosuch=1", body)
		if err != nil {
			t.Fatal(err)
		}
		var p rest.Problem
		var taken []string
		if json.Unmarshal(res.body, &p) == nil && p.Code == string(rest.ErrInvalidFilter) {
			_, names, ok := strings.Cut(p.Detail, `there is no parameter "nosuch", only: `)
			if !ok {
				t.Errorf("%s: %s", name, p.Detail)
			}
			taken = strings.Split(names, ", ")
			named += len(taken)
		}
		slices.Sort(promised)
		slices.Sort(taken)
		if diff := cmp.Diff(promised, taken); diff != "" {
			t.Errorf("%s: openapi.yaml (-) and the route (+) differ:\n%s", name, diff)
		}
	}
	if named == 0 {
		t.Fatal("no route takes parameters")
	}
}

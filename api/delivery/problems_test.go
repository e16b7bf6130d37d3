package delivery

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
)

// The type of every problem leads to a page that explains it.
func TestProblemPages(t *testing.T) {
	s := newStack(t)
	var codes []string
	for _, k := range allKinds() {
		codes = append(codes, string(k.Code))
	}
	resttest.CheckProblemPages(t, codes, func(target string, header ...string) (int, http.Header, string) {
		res, err := s.send(http.MethodGet, target, nil, header...)
		if err != nil {
			return http.StatusBadRequest, nil, err.Error() // the client refuses to send the path
		}
		if len(header) == 0 {
			checkAnswer(t, http.MethodGet, "/problems/{code}", res)
		}
		return res.status, res.header, string(res.body)
	})
}

// A refused request names every fault with its place.
func TestFaultsHavePlaces(t *testing.T) {
	s := newStack(t)
	for name, c := range map[string]struct {
		res  response
		want []rest.Fault
	}{
		"body": {
			s.do(http.MethodPost, "/v1/transactions", []byte(`{"chainId": null, "transactions": ["0x12", 7, {"a": [",}"]}, true], "a/b~ c": {"x": [1]}, "transactions": []}`)),
			[]rest.Fault{
				{Pointer: "#/chainId", Detail: "/chainId must be a number or a string such as eip155:1, not null"},
				{Pointer: "#/transactions/1", Detail: "/transactions/1 must be a string, not a number"},
				{Pointer: "#/transactions/2", Detail: "/transactions/2 must be a string, not an object"},
				{Pointer: "#/transactions/3", Detail: "/transactions/3 must be a string, not a boolean"},
				{Pointer: "#/a~1b~0%20c", Detail: `the document has an unknown member "a/b~ c"`},
				{Pointer: "#/transactions", Detail: `the document has the member "transactions" twice`},
			},
		},
		"a missing member": {
			s.do(http.MethodPost, "/v1/transactions", []byte(`{"chainId": 1}`)),
			[]rest.Fault{{Pointer: "#", Detail: `the document lacks the member "transactions"`}},
		},
		"a parameter":             {s.get("/v1/transactions?limit=0"), []rest.Fault{{Parameter: "limit", Detail: `limit must be a number from 1 to 1000, not "0"`}}},
		"an unknown parameter":    {s.get("/v1/transactions/0x" + digits + "?chain=1"), []rest.Fault{{Parameter: "chain", Detail: `there is no parameter "chain", only: chainId, wait, timeout`}}},
		"a parameter of the path": {s.get("/v1/transactions/0x12"), []rest.Fault{{Parameter: "hash"}}},
		"a header":                {s.do(http.MethodGet, "/v1/events", nil, "Last-Event-ID", "x"), []rest.Fault{{Header: "Last-Event-ID", Detail: `Last-Event-ID must be a position, not "x"`}}},
	} {
		var p rest.Problem
		unmarshal(t, c.res.body, &p)
		if len(c.want) == 1 && c.want[0].Detail == "" && len(p.Errors) == 1 {
			c.want[0].Detail = p.Detail
		}
		if d := cmp.Diff(c.want, p.Errors); d != "" || c.res.status != http.StatusBadRequest || p.Detail != c.want[0].Detail {
			t.Errorf("%s answered %d %s (-want +got):\n%s", name, c.res.status, c.res.body, d)
		}
	}
}

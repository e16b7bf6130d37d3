package relay

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
)

// The type of every problem leads to a page that explains it, on both listeners.
func TestProblemPages(t *testing.T) {
	pages := func(s *stack, kinds []rest.Kind) {
		var codes []string
		for _, k := range kinds {
			codes = append(codes, string(k.Code))
		}
		resttest.CheckProblemPages(t, codes, func(target string, header ...string) (int, http.Header, string) {
			res, err := s.send(http.MethodGet, target, "", header...)
			if err != nil {
				return http.StatusBadRequest, nil, err.Error() // the client refuses to send the path
			}
			return res.status, res.header, string(res.body)
		})
	}
	internal, _ := operators(t)
	pages(internal, append(rest.Kinds(), (Operators{}).Kinds()...))
	engines(t, func(_ *testing.T, open func(...func(*Config)) *stack) {
		pages(open(), append(rest.Kinds(), kinds()...))
	})
}

// A refused intent names its faults with their places, also in a list.
func TestFaultsOfIntentsHavePlaces(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		faults := func(body string) (all []rest.Fault) {
			t.Helper()
			return into[rest.Problem](t, s.do(http.MethodPost, "/v1/intents", body), http.StatusBadRequest).Errors
		}
		got := faults(`{"chainId": 42431, "pool": 3, "calls": [{"to": "0x12"}, {"value": 5, "data": "0x1"}], "gas": {"limit": -1}, "metadata": {"a b": 1}}`)
		want := []rest.Fault{
			{Pointer: "#/pool", Detail: "/pool must be a string, not a number"},
			{Pointer: "#/calls/0/to"},
			{Pointer: "#/calls/1/value", Detail: "/calls/1/value must be a string, not a number"},
			{Pointer: "#/calls/1/data", Detail: "/calls/1/data must be 0x and an even number of hex digits"},
			{Pointer: "#/gas/limit", Detail: "/gas/limit must be a whole number from 0 to 2^64-1, in plain digits"},
			{Pointer: "#/metadata/a%20b", Detail: "/metadata/a%20b must be a string, not a number"},
			{Pointer: "#", Detail: `the document lacks the member "key", and the request has no Idempotency-Key`},
		}
		if len(got) > 1 {
			want[1].Detail = got[1].Detail
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if got := faults("[" + strings.Repeat("7,", 20) + "7]"); len(got) != 16 || got[15].Pointer != "#/15" {
			t.Errorf("%d faults: %v", len(got), got)
		}
		late := strings.Replace(fmt.Sprintf(plain, "late"), "{", `{"orderingKey": "a b", `, 1)
		p := into[rest.Problem](t, s.do(http.MethodPost, "/v1/intents", late), http.StatusUnprocessableEntity)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != "#/orderingKey" || p.Errors[0].Detail != p.Detail {
			t.Errorf("%+v", p)
		}
		list := into[struct{ Results []refused }](t, s.do(http.MethodPost, "/v1/intents", "["+fmt.Sprintf(plain, "good")+","+late+"]"), http.StatusAccepted)
		if p := list.Results[1].Problem; len(p.Errors) != 1 || p.Errors[0].Pointer != "#/1/orderingKey" {
			t.Errorf("%+v", p)
		}
	})
}

package relay

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// Lists are filtered by target, selector, metadata, nonce and time, together with the other filters and
// page by page.
func TestFilters(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		s := open()
		var ids []chain.IntentID
		for i := range 6 {
			body := fmt.Sprintf(`{"chainId": 42431, "key": "k%d", "signer": "0x0100000000000000000000000000000000000000",
				"calls": [{"to": "0x%040x", "data": "0xa9059cbb%02x"}, {"to": "0x0900000000000000000000000000000000000000"}],
				"metadata": {"order": "%d", "line": "a=b"}}`, i, i%3+1, i, i/2)
			ids = append(ids, into[shown](t, s.do(http.MethodPost, "/v1/intents", body), http.StatusAccepted).ID)
		}
		other := into[shown](t, s.do(http.MethodPost, "/v1/intents", fmt.Sprintf(whole, "other")), http.StatusAccepted).ID
		s.command(ids[4], assign(), attempted(4), seen(4, true))
		s.project()
		at := into[shown](t, s.do(http.MethodGet, "/v1/intents/"+ids[0].String(), ""), http.StatusOK)
		list := func(query string) (found []int) {
			for next := "/v1/intents?limit=2&" + query; next != ""; {
				res := s.do(http.MethodGet, next, "")
				for _, i := range into[page](t, res, http.StatusOK).Intents {
					found = append(found, slices.Index(append(ids, other), i.ID))
				}
				next, _, _ = strings.Cut(strings.TrimPrefix(res.header.Get("Link"), "<"), ">")
			}
			return found
		}
		nonce := fmt.Sprintf("signer=0x0100000000000000000000000000000000000000&nonce=%d", into[shown](t, s.do(http.MethodGet, "/v1/intents/"+ids[4].String(), ""), http.StatusOK).Place.Nonce)
		for query, want := range map[string][]int{
			"target=0x0000000000000000000000000000000000000002":                         {4, 1},
			"target=0x0900000000000000000000000000000000000000":                         {6, 5, 4, 3, 2, 1, 0},
			"target=0x0900000000000000000000000000000000000000&selector=0xa9059cbb":     {5, 4, 3, 2, 1, 0},
			"selector=0xA9059CBB&status=waiting":                                        {5, 3, 2, 1, 0},
			"selector=0xdeadbeef":                                                       nil,
			"metadata=order=1":                                                          {3, 2},
			"metadata=line=a%3Db":                                                       {5, 4, 3, 2, 1, 0},
			"metadata=invoice=4711&pool=hot":                                            {6},
			"metadata=order=1&key=k2":                                                   {2},
			"metadata=order=0&key=k2&signer=0x0100000000000000000000000000000000000000": nil,
			nonce:                   {4},
			nonce + "&nonceKey=0x1": nil,
			fmt.Sprintf("since=%d", at.RequestedAt-3600): {6, 5, 4, 3, 2, 1, 0},
			fmt.Sprintf("until=%d", at.RequestedAt-3600): nil,
			fmt.Sprintf("since=%d&until=%d&target=0x0000000000000000000000000000000000000002", at.RequestedAt-3600, at.RequestedAt+3600): {4, 1},
		} {
			if d := cmp.Diff(want, list(query)); d != "" {
				t.Errorf("%s: %s", query, d)
			}
		}
		for query, says := range map[string]string{
			"target=0x1": "target", "selector=0x1": "selector", "metadata=order": "metadata", "metadata==x": "metadata", "nonce=1": "signer",
			"signer=0x0100000000000000000000000000000000000000&nonce=-1": "nonce", "nonceKey=0x1": "nonce", "since=x": "since", "until=99999999999": "until",
			"signer=0x0100000000000000000000000000000000000000&key=k1&nonce=1": "signer",
		} {
			res := s.do(http.MethodGet, "/v1/intents?"+query, "")
			if s.problem(res, http.StatusBadRequest, "invalid-filter"); !strings.Contains(string(res.body), says) {
				t.Errorf("%s: %s", query, res.body)
			}
		}
		cursor := into[page](t, s.do(http.MethodGet, "/v1/intents?limit=1&metadata=order=1", ""), http.StatusOK).NextCursor
		s.problem(s.do(http.MethodGet, "/v1/intents?limit=1&metadata=order=2&cursor="+cursor, ""), http.StatusBadRequest, "invalid-cursor")
	})
}

// No filter shows a client another client's intents. An auditor finds intents of all clients, but by
// their selectors only those that are mined: before that, their data is their client's alone.
func TestFiltersKeepClientsApart(t *testing.T) {
	h := newHooked(t)
	ann, bob := h.token("ann", access.Submit, access.Read), h.token("bob", access.Submit, access.Read)
	auditor := h.token("auditor", access.Audit)
	ask := func(token, key string) chain.IntentID {
		body := strings.Replace(fmt.Sprintf(whole, key), "0xCAFE", "0xcafe0001", 1)
		return into[shown](t, h.do(http.MethodPost, "/v1/intents", body, "X-API-Key", token), http.StatusAccepted).ID
	}
	of := map[string][]chain.IntentID{ann: {ask(ann, "one"), ask(ann, "two")}}
	h.command(of[ann][0], assign(), attempted(1), seen(1, true))
	h.project()
	filters := []string{
		"target=0x0900000000000000000000000000000000000000", "metadata=invoice=4711", "subject=Alice+%26+S%C3%B6hne", "since=1", "until=9999999999",
		"signer=0x0100000000000000000000000000000000000000&nonce=" + fmt.Sprint(assign().(intent.Assign).Place.Nonce), "selector=0xcafe0001",
	}
	for _, f := range filters {
		seen := func(token string) (ids []chain.IntentID) {
			for _, i := range into[page](t, h.do(http.MethodGet, "/v1/intents?"+f, "", "X-API-Key", token), http.StatusOK).Intents {
				ids = append(ids, i.ID)
			}
			return ids
		}
		if got := seen(bob); len(got) > 0 {
			t.Errorf("%s: bob sees %v", f, got)
		}
		mine, all := seen(ann), seen(auditor)
		if len(mine) == 0 {
			t.Errorf("%s: ann does not see her own", f)
		}
		want := mine
		if strings.HasPrefix(f, "selector") {
			if len(mine) != 2 {
				t.Errorf("%s: ann sees %v of her own", f, mine)
			}
			want = []chain.IntentID{of[ann][0]}
		}
		if d := cmp.Diff(want, all); d != "" {
			t.Errorf("%s: the auditor sees (-want +got):\n%s", f, d)
		}
		h.problem(h.do(http.MethodGet, "/v1/intents?client=ann&"+f, "", "X-API-Key", bob), http.StatusForbidden, "forbidden")
	}
}

// An intent shows the request that created it, and its trace; so do lists, and events carry both.
func TestRequestAndTraceAreShown(t *testing.T) {
	const request, trace = "0af76519-16cd-43dd-8448-eb211c80319c", "0af7651916cd43dd8448eb211c80319c"
	h := newHooked(t)
	ann := h.token("ann", access.Submit, access.Read)
	made := into[shown](t, h.do(http.MethodPost, "/v1/intents", fmt.Sprintf(plain, "one"), "X-API-Key", ann, "X-Request-Id", request, "traceparent", "00-"+trace+"-b7ad6b7169203331-01"), http.StatusAccepted)
	h.project()
	list := into[page](t, h.do(http.MethodGet, "/v1/intents", "", "X-API-Key", ann, "X-Request-Id", "another"), http.StatusOK)
	got := into[shown](t, h.do(http.MethodGet, "/v1/intents/"+made.ID.String(), "", "X-API-Key", ann), http.StatusOK)
	for _, i := range []*shown{&made, &got, list.Intents[0]} {
		if i.RequestID == nil || i.RequestID.String() != request || i.TraceID != trace {
			t.Errorf("shown with request %v and trace %q", i.RequestID, i.TraceID)
		}
	}
}

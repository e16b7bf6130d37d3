package delivery

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// Row 28: other clients' transactions do not exist for the client.
func TestBoundKeySeesItsSendersOnly(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config)
	mine, theirs := newKey(t), newKey(t)
	me := chain.Address(crypto.PubkeyToAddress(mine.PublicKey))
	them := chain.Address(crypto.PubkeyToAddress(theirs.PublicKey))
	bound, _ := keys.Create(access.Key{Scopes: access.Scopes(), Senders: []chain.Address{me}})
	all := keys.Scoped(access.Scopes()...)
	ask := func(token, method, target string, body []byte) response {
		t.Helper()
		return s.do(method, target, body, "X-API-Key", token)
	}
	submit := func(token string, raws ...[]byte) (out struct{ Results []result }) {
		t.Helper()
		res := ask(token, http.MethodPost, "/v1/transactions", submissionOf(testChain, raws...))
		unmarshal(t, res.body, &out)
		if len(out.Results) != len(raws) {
			t.Fatalf("submit: %v", res)
		}
		return out
	}

	foreign := submit(all, signed(t, theirs, testChain, 0)).Results[0].TxHash
	before := len(s.recorded())
	// A refusal does not reveal that the transaction is known.
	for i, r := range submit(bound, signed(t, theirs, testChain, 0), signed(t, theirs, testChain, 1)).Results {
		if r.OK || r.Problem.Code != string(rest.ErrForeignSender) || r.Problem.Status != 403 {
			t.Errorf("foreign transaction %d: %+v", i, r)
		}
	}
	if n := len(s.recorded()); n != before {
		t.Errorf("%d events of foreign transactions", n-before)
	}
	own := submit(bound, signed(t, mine, testChain, 0)).Results[0].TxHash

	look := func(when string) {
		t.Helper()
		for _, rest := range []string{"", "/events"} {
			if res := ask(bound, http.MethodGet, "/v1/transactions/"+own.String()+rest, nil); res.status != 200 {
				t.Errorf("%s, own%s: %v", when, rest, res)
			}
			wantProblem(t, when, ask(bound, http.MethodGet, "/v1/transactions/"+foreign.String()+rest, nil), 404, tx.ErrUnknown)
			if res := ask(all, http.MethodGet, "/v1/transactions/"+foreign.String()+rest, nil); res.status != 200 {
				t.Errorf("%s, with the other key%s: %v", when, rest, res)
			}
		}
		wantProblem(t, when, ask(bound, http.MethodDelete, "/v1/transactions/"+foreign.String(), nil), 404, tx.ErrUnknown)
	}
	look("before the read model")
	s.catchUp()
	look("after")

	list := func(token, query string) (senders []string) {
		t.Helper()
		var page struct{ Transactions []struct{ Sender string } }
		unmarshal(t, ask(token, http.MethodGet, "/v1/transactions"+query, nil).body, &page)
		for _, row := range page.Transactions {
			senders = append(senders, row.Sender)
		}
		return senders
	}
	if diff := cmp.Diff([]string{me.String()}, list(bound, "")); diff != "" {
		t.Error(diff)
	}
	if got := list(bound, "?sender="+them.String()); len(got) != 0 {
		t.Errorf("the list of others: %v", got)
	}
	if got := list(all, ""); len(got) != 2 {
		t.Errorf("the list of all: %v", got)
	}
	// A cursor of one list is invalid for the other.
	var page struct{ NextCursor string }
	unmarshal(t, ask(all, http.MethodGet, "/v1/transactions?limit=1", nil).body, &page)
	wantProblem(t, "another's cursor", ask(bound, http.MethodGet, "/v1/transactions?cursor="+page.NextCursor, nil), 400, rest.ErrInvalidCursor)
}

// A bound key gets nothing on a route whose keeps was forgotten.
func TestBoundKeyIsRefusedByDefault(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config)
	mine, other := chain.Address{1}, chain.Address{2}
	bound, _ := keys.Create(access.Key{Scopes: access.Scopes(), Senders: []chain.Address{mine}})
	nothing := func(r rest.Request) error { return r.Reply(http.StatusOK, struct{}{}) }
	a := newAPI(s.config)
	h := rest.NewFront(s.config.Config).Handler(a.kept([]route{
		{http.MethodGet, "/everything", access.Read, nobody, false, nothing},
		{http.MethodGet, "/open", rest.Public, nobody, false, nothing},
		{http.MethodGet, "/of/{sender}/groups", access.Read, bySender, false, nothing},
	}))
	for target, want := range map[string]int{
		"/everything":                       403,
		"/open":                             200,
		"/of/" + mine.String() + "/groups":  200,
		"/of/" + other.String() + "/groups": 404,
		"/of/0X" + strings.ToUpper(other.String()[2:]) + "/groups":   404,
		"/of/%30x" + strings.ToUpper(other.String()[2:]) + "/groups": 404,
		"/of/nobody/groups": 404,
	} {
		r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil), httptest.NewRecorder()
		r.Header.Set("X-API-Key", bound)
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
}

// Every request of a bound key about another client's transaction gets the answer for an
// unknown transaction, before and after the read model has it.
func TestForeignIsAsUnknown(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config)
	foreign := s.submit(signed(t, newKey(t), testChain, 0))[0].TxHash
	bound, _ := keys.Create(access.Key{Scopes: access.Scopes(), Senders: []chain.Address{{1}}})
	for _, when := range []string{"before", "after"} {
		if when == "after" {
			s.catchUp()
		}
		for _, target := range []string{"", "?bogus=1", "?chainId=x", "?chainId=1", "?wait=nothing", "?wait=executed&timeout=0", "/events", "/events?after=x"} {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete} {
				if method == http.MethodDelete && strings.HasPrefix(target, "/") {
					continue
				}
				ask := func(hash chain.Hash) response {
					t.Helper()
					res, err := s.send(method, "/v1/transactions/"+hash.String()+target, nil, "X-API-Key", bound, "X-Request-Id", "same")
					if err != nil {
						t.Fatal(err)
					}
					res.header.Del("Date")
					return res
				}
				there, not := ask(foreign), ask(chain.Hash{1})
				if diff := cmp.Diff(not.header, there.header); there.status != http.StatusNotFound || string(there.body) != string(not.body) || diff != "" {
					t.Errorf("%s, %s %s: %d %s, of what is not there %d %s %s", when, method, target, there.status, there.body, not.status, not.body, diff)
				}
			}
		}
	}
}

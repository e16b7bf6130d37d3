package delivery

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Names in some inputs. Nothing with these names was accepted.
const (
	digits    = "5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060"
	someone   = "0x00000000000000000000000000000000000000aa"
	someGroup = "0x000000000000000000000000000000aa"
)

// Rows 18 to 28: paths are used as sent, and parameters parsed by their types.
func pathInputs(t *testing.T) []input {
	const hash, events = "/v1/transactions/0x" + digits, "/events"
	at := func(row int, target string, status int, code eventlog.Refusal) input {
		return input{row: row, what: rest.Quote(target), request: get(target), answer: refuses(status, code)}
	}
	list := []input{
		at(18, "/", 404, rest.ErrNotFound),
		at(18, "/v1", 404, rest.ErrNotFound),
		at(18, "/v1/transactions/", 404, rest.ErrNotFound),
		at(18, "/v1/transactions/../../etc/passwd", 404, rest.ErrNotFound),
		at(18, "//v1//transactions", 404, rest.ErrNotFound),
		at(18, "//v1/transactions", 404, rest.ErrNotFound),
		at(18, "/v1/./transactions", 404, rest.ErrNotFound),
		at(18, "/V1/transactions", 404, rest.ErrNotFound),
		at(18, "/v1%2ftransactions", 404, rest.ErrNotFound),
		at(18, hash+"/", 404, rest.ErrNotFound),
		at(18, hash+events+"/", 404, rest.ErrNotFound),
		at(19, "/v1/transactions/..", 400, ErrInvalidHash),
		at(19, "/v1/transactions/%2e%2e%2f%2e%2e%2fetc", 400, ErrInvalidHash),
		at(19, "/v1/transactions/%2e%2e%2f%2e%2e%2fetc/events", 400, ErrInvalidHash),
		at(19, "/v1/transactions/%00", 400, ErrInvalidHash),
		at(19, hash+"%00", 400, ErrInvalidHash),
		at(19, "/v1/senders/%00/groups", 400, rest.ErrInvalidAddress),
		at(19, "/v1/senders/"+someone+"/groups/%2e%2e", 400, ErrInvalidGroupID),
		{row: 19, what: "an escape that is none", request: get("/v1/transactions/%zz"), answer: answers(400)},
		at(20, "/v1/transactions/0x"+digits[1:], 400, ErrInvalidHash),
		at(20, "/v1/transactions/0x0"+digits, 400, ErrInvalidHash),
		at(20, "/v1/transactions/"+digits, 400, ErrInvalidHash),
		at(20, "/v1/transactions/0X"+digits, 400, ErrInvalidHash),
		at(20, "/v1/transactions/0x"+digits[:63]+"g", 400, ErrInvalidHash),
		at(20, "/v1/transactions/0x"+digits[:63]+"%D9%A3", 400, ErrInvalidHash), // an Arabic-Indic digit
		at(20, hash+"%E2%80%8B", 400, ErrInvalidHash),                           // a zero-width space
		at(20, "/v1/senders/0x12/groups", 400, rest.ErrInvalidAddress),
		at(20, "/v1/senders/"+someone+"/groups/0x12", 400, ErrInvalidGroupID),
		at(20, hash, 404, tx.ErrUnknown),
		at(20, "/v1/transactions/%30x"+digits, 404, tx.ErrUnknown),
		at(20, hash+events, 404, tx.ErrUnknown),
		at(20, hash+"?chainId=42431", 404, tx.ErrUnknown),
		at(20, hash+"?chainId=5", 404, tx.ErrUnknown),
		{row: 20, what: "a hash in capitals", does: hashInCapitals},
		{row: 25, what: "10,000 parameters", request: get("/v1/transactions?" + strings.Repeat("status=queued&", 10_000)), answer: answers(431)},
		{row: 26, what: "cursors of others", does: cursorsOfOthers},
		{row: 27, what: "strange request ids", does: strangeRequestIDs},
		{row: 27, what: "strange idempotency keys", does: strangeIdempotencyKeys},
		{row: 28, what: "another client's transactions and groups", does: anotherClients},
	}
	return append(list, parameterInputs()...)
}

// Rows 21 to 26, as far as a single request shows them.
func parameterInputs() (list []input) {
	of := func(q string) string { return "/v1/transactions?" + q }
	injected := url.QueryEscape("' OR 1=1--")
	for _, tt := range []struct {
		row    int
		target string
		code   eventlog.Refusal
		says   string
	}{
		{21, of("sender=" + injected), rest.ErrInvalidFilter, "sender"},
		{21, of("sender=" + someone + url.QueryEscape("';DROP TABLE x")), rest.ErrInvalidFilter, "sender"},
		{21, of("groupId=" + url.QueryEscape("0x';DROP")), rest.ErrInvalidFilter, "group"},
		{21, of("status=" + injected), rest.ErrInvalidFilter, "OR 1=1"},
		{21, of("cursor=" + injected), rest.ErrInvalidCursor, "cursor"},
		{21, of("chainId=" + injected), rest.ErrInvalidFilter, "chainId"},
		{21, of("limit=" + injected), rest.ErrInvalidLimit, "OR 1=1"},
		{21, "/v1/transactions/" + injected, ErrInvalidHash, "hash"},
		{21, "/v1/senders/" + injected + "/groups", rest.ErrInvalidAddress, "address"},
		{21, "/v1/events?hash=" + injected, rest.ErrInvalidFilter, "hash"},
		{22, of("status=queued&status=foo"), rest.ErrInvalidFilter, `"foo", only: queued `},
		{22, of("status=QUEUED"), rest.ErrInvalidFilter, `"QUEUED"`},
		{22, of("status="), rest.ErrInvalidFilter, `""`},
		{22, of("status=" + strings.Repeat("x", 1000)), rest.ErrInvalidFilter, "…"},
		{22, of("status=queued%00"), rest.ErrInvalidFilter, `\x00`},
		{22, of("sender="), rest.ErrInvalidFilter, "sender"},
		{22, of("sender=" + someone + "&sender=" + someone), rest.ErrInvalidFilter, "sender is given more than once"},
		{22, of("groupId=" + someone), rest.ErrInvalidFilter, "group id"},
		{22, of("chainId=0"), rest.ErrInvalidFilter, "chainId"},
		{22, of("chainId=0x1"), rest.ErrInvalidFilter, "chainId"},
		{22, of("chainId=-1"), rest.ErrInvalidFilter, "chainId"},
		{22, of("chainId=042431"), rest.ErrInvalidFilter, "chainId"},
		{22, of("chainId=18446744073709551616"), rest.ErrInvalidFilter, "chainId"},
		{22, of("chainId=1&chainId=1"), rest.ErrInvalidFilter, "chainId is given more than once"},
		{22, of("statsu=queued"), rest.ErrInvalidFilter, `"statsu"`},
		{22, of("Status=queued"), rest.ErrInvalidFilter, `"Status"`},
		{22, of("status=queued;limit=5"), rest.ErrInvalidFilter, "escaped"},
		{22, of("status=%zz"), rest.ErrInvalidFilter, "escaped"},
		{22, "/v1/transactions/0x" + digits + "?chainId=x", rest.ErrInvalidFilter, "chainId"},
		{22, "/v1/transactions/0x" + digits + "?status=queued", rest.ErrInvalidFilter, `"status"`},
		{22, "/v1/transactions/0x" + digits + "/events?after=-1", rest.ErrInvalidFilter, "after"},
		{22, "/v1/transactions/0x" + digits + "/events?limit=5", rest.ErrInvalidFilter, `"limit"`},
		{23, of("limit=-1"), rest.ErrInvalidLimit, `"-1"`},
		{23, of("limit=0"), rest.ErrInvalidLimit, `"0"`},
		{23, of("limit=1001"), rest.ErrInvalidLimit, "1000"},
		{23, of("limit=1e9"), rest.ErrInvalidLimit, `"1e9"`},
		{23, of("limit=abc"), rest.ErrInvalidLimit, `"abc"`},
		{23, of("limit=+5"), rest.ErrInvalidLimit, `" 5"`},
		{23, of("limit=%2B5"), rest.ErrInvalidLimit, `"+5"`},
		{23, of("limit=0x10"), rest.ErrInvalidLimit, `"0x10"`},
		{23, of("limit=" + url.QueryEscape("５")), rest.ErrInvalidLimit, "limit"},
		{23, of("limit=9223372036854775808"), rest.ErrInvalidLimit, "limit"},
		{23, of("limit="), rest.ErrInvalidLimit, "limit"},
		{23, "/v1/senders/" + someone + "/groups?limit=0", rest.ErrInvalidLimit, `"0"`},
		{24, of("ungrouped=true&groupId=" + someGroup), rest.ErrInvalidFilter, "exclude"},
		{24, of("ungrouped=yes"), rest.ErrInvalidFilter, `"yes"`},
		{24, of("ungrouped"), rest.ErrInvalidFilter, `""`},
		{25, of(strings.Repeat("status=queued&", 500)), rest.ErrInvalidFilter, "500 times"},
		{26, of("cursor=AAAA"), rest.ErrInvalidCursor, "cursor"},
		{26, of("cursor="), rest.ErrInvalidCursor, "cursor"},
		{26, "/v1/senders/" + someone + "/groups?cursor=AAAA", rest.ErrInvalidCursor, "cursor"},
	} {
		refused := refuses(http.StatusBadRequest, tt.code)
		list = append(list, input{row: tt.row, what: rest.Quote(tt.target), request: get(tt.target), answer: func(t *testing.T, answers []response, closed bool) {
			refused(t, answers, closed)
			var p rest.Problem
			if unmarshal(t, answers[0].body, &p); !strings.Contains(p.Detail, tt.says) {
				t.Errorf("detail %q does not say %q", p.Detail, tt.says)
			}
		}})
	}
	return list
}

// Row 20: any case is accepted, and answered in lower case.
func hashInCapitals(t *testing.T, s *stack) int {
	raw := signed(t, newKey(t), testChain, 0)
	s.submit(raw)
	hash := chain.Keccak(raw).String()
	for _, target := range []string{"/v1/transactions/0x" + strings.ToUpper(hash[2:]), "/v1/transactions/" + hash} {
		var shown struct{ TxHash string }
		res := s.get(target)
		if unmarshal(t, res.body, &shown); res.status != http.StatusOK || shown.TxHash != hash {
			t.Errorf("%s answered %v", target, res)
		}
	}
	return 1
}

// Row 26: a cursor is valid for the list for which it was made, for clients that see the same
// list, at the same service.
func cursorsOfOthers(t *testing.T, _ *stack) int {
	keys := newRing(t)
	s := newStack(t, keys.config)
	key, stranger := newKey(t), chain.Address{9}
	owner := chain.Address(crypto.PubkeyToAddress(key.PublicKey))
	reader := keys.Scoped(access.Read, access.Submit)
	bound, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Senders: []chain.Address{owner}})
	other, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Senders: []chain.Address{owner, stranger}})
	if res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, signed(t, key, testChain, 0), signed(t, key, testChain, 1)), "X-API-Key", reader); res.status != 200 {
		t.Fatal(res)
	}
	s.catchUp()
	list := func(token, query string) response {
		return s.do(http.MethodGet, "/v1/transactions?limit=1"+query, nil, "X-API-Key", token)
	}
	var page struct{ NextCursor string }
	if unmarshal(t, list(bound, "").body, &page); page.NextCursor == "" {
		t.Fatal("there is no second page")
	}
	with := "&cursor=" + page.NextCursor
	if res := list(bound, with); res.status != http.StatusOK {
		t.Errorf("its own client: %v", res)
	}
	forging := s.config.Config
	forging.CursorKey = make([]byte, rest.CursorKeyBytes)
	for what, res := range map[string]response{
		"no key's client":      list(reader, with),
		"another key's client": list(other, with),
		"another filter":       list(bound, with+"&status=queued"),
		"another list":         s.do(http.MethodGet, "/v1/senders/"+owner.String()+"/groups?cursor="+page.NextCursor, nil, "X-API-Key", bound),
		"cut short":            list(bound, with[:len(with)-1]),
		"made longer":          list(bound, with+"A"),
		"forged":               list(bound, "&cursor="+cursorOf(t, forging, 1)),
	} {
		wantProblem(t, what, res, http.StatusBadRequest, rest.ErrInvalidCursor)
	}
	return 0
}

// strange are texts that look like others, or that some programs read differently.
var strange = []string{
	"", "a b", "a\tb", "a\"b", "\u0661", "\u0430", "a\u200bb", "e\u0301", "\u00e9", "a\xff", "a\u202eb", "\uff41", "a,b", strings.Repeat("a", 129),
}

// Row 27: a client's request id is used only if it is well formed. Otherwise the request gets a
// new id, and is served.
func strangeRequestIDs(t *testing.T, s *stack) int {
	for _, id := range append(strange, "a\r\nX-Request-Id: b") {
		answers, _ := s.raw("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: "+id+"\r\n\r\n", patience)
		if len(answers) != 1 || answers[0].status != http.StatusOK || len(answers[0].header.Get("X-Request-Id")) != 36 {
			t.Errorf("%q: %v", id, answers)
		}
	}
	return 0
}

// Row 27: an idempotency key must be well formed.
func strangeIdempotencyKeys(t *testing.T, _ *stack) int {
	s := remembering(t, as)
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	under := func(header string) string {
		return post(fmt.Sprintf("%s%sConnection: close\r\nContent-Length: %d\r\n", jsonType, header, len(body)), string(body))
	}
	valid := []string{"a\"b", "a,b", strings.Repeat("a", 129)} // as keys, not as request ids
	for _, key := range append(slices.DeleteFunc(slices.Clone(strange), func(s string) bool { return slices.Contains(valid, s) }), strings.Repeat("a", 257), `""`, `"a`) {
		answers, closed := s.raw(under("Idempotency-Key: "+key+"\r\n"), patience)
		refuses(400, rest.ErrInvalidIdempotencyKey)(t, answers, closed)
	}
	answers, closed := s.raw(under("Idempotency-Key: a\r\nIdempotency-Key: a\r\n"), patience)
	refuses(400, rest.ErrInvalidIdempotencyKey)(t, answers, closed)
	if n := s.events(t); n != 0 {
		t.Errorf("%d events", n)
	}
	// Keys that look alike are different keys.
	for _, key := range []string{"order-1", "Order-1", strings.Repeat("a", 128)} {
		if res := s.once(key, body); res.status != http.StatusOK || res.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%q: %v", key, res)
		}
	}
	return 0
}

// Row 28: another client's transaction is answered as unknown, byte for byte.
func anotherClients(t *testing.T, _ *stack) int {
	keys := newRing(t)
	s := newStack(t, keys.config)
	key := newKey(t)
	owner := chain.Address(crypto.PubkeyToAddress(key.PublicKey))
	submitter := keys.Scoped(access.Submit)
	bound, _ := keys.Create(access.Key{Scopes: access.Scopes(), Senders: []chain.Address{{9}}})
	raw := signed(t, key, testChain, 0)
	if res := s.do(http.MethodPost, "/v1/transactions", submissionOf(testChain, raw), "X-API-Key", submitter); res.status != 200 {
		t.Fatal(res)
	}
	s.catchUp()
	for there, absent := range map[string]string{
		"/v1/transactions/" + chain.Keccak(raw).String():             "/v1/transactions/0x" + digits,
		"/v1/transactions/" + chain.Keccak(raw).String() + "/events": "/v1/transactions/0x" + digits + "/events",
		groupsPath(owner):                   groupsPath(chain.Address{7}),
		groupsPath(owner) + "/" + someGroup: groupsPath(chain.Address{7}) + "/" + someGroup,
	} {
		ask := func(target string) (int, string) {
			res := s.do(http.MethodGet, target, nil, "X-API-Key", bound, "X-Request-Id", "same")
			return res.status, string(res.body)
		}
		status, body := ask(there)
		if s, b := ask(absent); status != http.StatusNotFound || s != status || b != body {
			t.Errorf("%s: %d %s; what is not there: %d %s", there, status, body, s, b)
		}
	}
	if res := s.do(http.MethodDelete, "/v1/transactions/"+chain.Keccak(raw).String(), nil, "X-API-Key", bound); res.status != http.StatusNotFound {
		t.Errorf("DELETE: %v", res)
	}
	if res := s.do(http.MethodGet, "/v1/transactions", nil, "X-API-Key", bound); string(res.body) != `{"transactions":[],"hasMore":false}`+"\n" {
		t.Errorf("listed: %v", res)
	}
	return 0
}

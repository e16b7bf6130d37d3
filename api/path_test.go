package api

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// ask sends a GET with the target as it stands, which a client would mend.
func (s *stack) ask(target string) response {
	s.t.Helper()
	answers, _ := s.raw(get(target), patience)
	if len(answers) != 1 {
		s.t.Fatalf("GET %.100s: answers %v", target, answers)
	}
	return answers[0]
}

// Rows 18 to 20: paths are taken as sent.
func TestPaths(t *testing.T) {
	s := newStack(t)
	const digits = "5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060"
	for _, tt := range []struct {
		target string
		status int
		code   event.Refusal
	}{
		{"/", 404, ErrNotFound},
		{"/v1", 404, ErrNotFound},
		{"/v1/transactions/", 404, ErrNotFound},
		{"/v1/transactions/../../etc/passwd", 404, ErrNotFound},
		{"//v1//transactions", 404, ErrNotFound},
		{"//v1/transactions", 404, ErrNotFound},
		{"/v1/./transactions", 404, ErrNotFound},
		{"/V1/transactions", 404, ErrNotFound},
		{"/v1%2ftransactions", 404, ErrNotFound},
		{"/v1/transactions/0x" + digits + "/", 404, ErrNotFound},
		{"/v1/transactions/0x" + digits + "/events/", 404, ErrNotFound},
		{"/v1/transactions/..", 400, ErrInvalidHash},
		{"/v1/transactions/%2e%2e%2f%2e%2e%2fetc", 400, ErrInvalidHash},
		{"/v1/transactions/%2e%2e%2f%2e%2e%2fetc/events", 400, ErrInvalidHash},
		{"/v1/transactions/%00", 400, ErrInvalidHash},
		{"/v1/transactions/0x" + digits + "%00", 400, ErrInvalidHash},
		{"/v1/transactions/0x" + digits[1:], 400, ErrInvalidHash},
		{"/v1/transactions/0x0" + digits, 400, ErrInvalidHash},
		{"/v1/transactions/" + digits, 400, ErrInvalidHash},
		{"/v1/transactions/0X" + digits, 400, ErrInvalidHash},
		{"/v1/transactions/0x" + digits[:63] + "g", 400, ErrInvalidHash},
		{"/v1/transactions/0x" + digits[:63] + "%D9%A3", 400, ErrInvalidHash}, // an Arabic-Indic digit
		{"/v1/transactions/0x" + digits + "%E2%80%8B", 400, ErrInvalidHash},   // a zero-width space
		{"/v1/transactions/0x" + digits, 404, tx.ErrUnknown},
		{"/v1/transactions/0x" + strings.ToUpper(digits), 404, tx.ErrUnknown},
		{"/v1/transactions/%30x" + digits, 404, tx.ErrUnknown},
		{"/v1/transactions/0x" + digits + "/events", 404, tx.ErrUnknown},
		{"/v1/transactions/0x" + digits + "?chainId=42431", 404, tx.ErrUnknown},
		{"/v1/transactions/0x" + digits + "?chainId=5", 404, tx.ErrUnknown},
	} {
		wantProblem(t, tt.target, s.ask(tt.target), tt.status, tt.code)
	}
	// Escapes that are none are refused by net/http itself.
	if res := s.ask("/v1/transactions/%zz"); res.status != http.StatusBadRequest {
		t.Errorf("%%zz: %v", res)
	}
}

// Rows 21 to 27: parameters are parsed by their types, and named when they are wrong.
func TestParameters(t *testing.T) {
	s := newStack(t)
	const (
		address = "0x00000000000000000000000000000000000000aa"
		group   = "0x000000000000000000000000000000aa"
		hash    = "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060"
	)
	list := func(q string) string { return "/v1/transactions?" + q }
	injected := url.QueryEscape("' OR 1=1--")
	for _, tt := range []struct {
		target string
		code   event.Refusal
		says   string
	}{
		{list("sender=" + injected), ErrInvalidFilter, "sender"},
		{list("sender=" + address + url.QueryEscape("';DROP TABLE x")), ErrInvalidFilter, "sender"},
		{list("groupId=" + url.QueryEscape("0x';DROP")), ErrInvalidFilter, "group"},
		{list("status=" + injected), ErrInvalidFilter, "OR 1=1"},
		{list("cursor=" + injected), ErrInvalidCursor, "cursor"},
		{list("chainId=" + injected), ErrInvalidFilter, "chainId"},
		{list("status=queued&status=foo"), ErrInvalidFilter, `"foo"`},
		{list("status=QUEUED"), ErrInvalidFilter, `"QUEUED"`},
		{list("status="), ErrInvalidFilter, `""`},
		{list("status=" + strings.Repeat("x", 1000)), ErrInvalidFilter, "…"},
		{list("sender="), ErrInvalidFilter, "sender"},
		{list("sender=" + address + "&sender=" + address), ErrInvalidFilter, "sender is given more than once"},
		{list("groupId=" + address), ErrInvalidFilter, "group id"},
		{list("limit=-1"), ErrInvalidLimit, `"-1"`},
		{list("limit=0"), ErrInvalidLimit, `"0"`},
		{list("limit=1001"), ErrInvalidLimit, "1000"},
		{list("limit=1e9"), ErrInvalidLimit, `"1e9"`},
		{list("limit=abc"), ErrInvalidLimit, `"abc"`},
		{list("limit=+5"), ErrInvalidLimit, `" 5"`},
		{list("limit=%2B5"), ErrInvalidLimit, `"+5"`},
		{list("limit=0x10"), ErrInvalidLimit, `"0x10"`},
		{list("limit=" + url.QueryEscape("５")), ErrInvalidLimit, "limit"},
		{list("limit=9223372036854775808"), ErrInvalidLimit, "limit"},
		{list("limit="), ErrInvalidLimit, "limit"},
		{list("chainId=0"), ErrInvalidFilter, "chainId"},
		{list("chainId=0x1"), ErrInvalidFilter, "chainId"},
		{list("chainId=-1"), ErrInvalidFilter, "chainId"},
		{list("chainId=042431"), ErrInvalidFilter, "chainId"},
		{list("chainId=18446744073709551616"), ErrInvalidFilter, "chainId"},
		{list("chainId=1&chainId=1"), ErrInvalidFilter, "chainId is given more than once"},
		{list("ungrouped=true&groupId=" + group), ErrInvalidFilter, "exclude"},
		{list("ungrouped=yes"), ErrInvalidFilter, `"yes"`},
		{list("ungrouped"), ErrInvalidFilter, `""`},
		{list("statsu=queued"), ErrInvalidFilter, `"statsu"`},
		{list("Status=queued"), ErrInvalidFilter, `"Status"`},
		{list("status=queued;limit=5"), ErrInvalidFilter, "escaped"},
		{list("status=%zz"), ErrInvalidFilter, "escaped"},
		{list("status=queued%00"), ErrInvalidFilter, `\x00`},
		{list(strings.Repeat("status=queued&", 500)), ErrInvalidFilter, "500 times"},
		{list("cursor=AAAA"), ErrInvalidCursor, "cursor"},
		{list("cursor="), ErrInvalidCursor, "cursor"},
		{"/v1/transactions/" + hash + "?chainId=x", ErrInvalidFilter, "chainId"},
		{"/v1/transactions/" + hash + "?status=queued", ErrInvalidFilter, `"status"`},
		{"/v1/transactions/" + hash + "/events?after=-1", ErrInvalidFilter, "after"},
		{"/v1/transactions/" + hash + "/events?limit=5", ErrInvalidFilter, `"limit"`},
	} {
		p := wantProblem(t, quote(tt.target), s.ask(tt.target), http.StatusBadRequest, tt.code)
		if !strings.Contains(p.Detail, tt.says) {
			t.Errorf("%.64s: detail %q does not say %q", tt.target, p.Detail, tt.says)
		}
	}
	// Row 25: a query of 140 KB is over the header limit.
	if res := s.ask(list(strings.Repeat("status=queued&", 10_000))); res.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("10,000 parameters: %v", res)
	}
	for _, q := range []string{
		"", "limit=1", "limit=1000", "sender=" + strings.ToUpper(address[2:]), "status=queued&status=queued&status=expired",
		"ungrouped=false&groupId=" + group, "ungrouped=true", "chainId=18446744073709551615",
	} {
		q = strings.Replace(q, "sender=", "sender=0x", 1)
		if res := s.get(list(q)); res.status != http.StatusOK || string(res.body) != `{"transactions":[],"hasMore":false}`+"\n" {
			t.Errorf("%s: %v", q, res)
		}
	}
}

// An id that a client may have made up is taken over only in the one allowed form.
func TestRequestIDs(t *testing.T) {
	s := newStack(t)
	made := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, tt := range []struct {
		headers string
		taken   string
	}{
		{"", ""},
		{"X-Request-Id: abc.DEF-123_4:5\r\n", "abc.DEF-123_4:5"},
		{"X-Request-Id: " + strings.Repeat("a", 128) + "\r\n", strings.Repeat("a", 128)},
		{"X-Request-Id: " + strings.Repeat("a", 129) + "\r\n", ""},
		{"X-Request-Id: \r\n", ""},
		{"X-Request-Id: a b\r\n", ""},
		{"X-Request-Id: a\tb\r\n", ""},
		{"X-Request-Id: a\"b\r\n", ""},
		{"X-Request-Id: ١٢٣\r\n", ""},
		{"X-Request-Id: а\r\n", ""},        // a Cyrillic letter
		{"X-Request-Id: a\u200bb\r\n", ""}, // a zero-width space
		{"X-Request-Id: e\u0301\r\n", ""},  // a combining accent
		{"X-Request-Id: a\xff\r\n", ""},    // not UTF-8
		{"X-Request-Id: a\u202eb\r\n", ""}, // a change of direction
		{"X-Request-Id: a\r\nX-Request-Id: b\r\n", ""},
	} {
		answers, _ := s.raw("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+tt.headers+"\r\n", patience)
		if len(answers) != 1 {
			t.Fatalf("%q: %v", tt.headers, answers)
		}
		got := answers[0].header.Get("X-Request-Id")
		if tt.taken != "" && got != tt.taken || tt.taken == "" && !made.MatchString(got) {
			t.Errorf("%q: answered %q", tt.headers, got)
		}
		if seen[got] {
			t.Errorf("%q was given twice", got)
		}
		seen[got] = true
	}
}

func TestTraceparent(t *testing.T) {
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for text, taken := range map[string]bool{
		"00-" + id + "-" + span + "-01": true, "42-" + id + "-" + span + "-00": true,
		"": false, "00": false, "ff-" + id + "-" + span + "-01": false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01": false,
		"00-" + id + "-" + strings.Repeat("0", 16) + "-01":   false,
		"00-" + strings.ToUpper(id) + "-" + span + "-01":     false,
		"00-" + id + "-" + span + "-01-more":                 false,
		"00-" + id[1:] + "-" + span + "-01":                  false,
		"00-" + id + "-" + span + "-0g":                      false,
	} {
		r := &http.Request{Header: http.Header{"Traceparent": {text}}}
		want := ""
		if taken {
			want = text
		}
		if got := traceparent(r); got != want {
			t.Errorf("%q: taken as %q", text, got)
		}
	}
	if got := traceparent(&http.Request{Header: http.Header{"Traceparent": {"00-" + id + "-" + span + "-01", "00-" + id + "-" + span + "-01"}}}); got != "" {
		t.Errorf("two of them: taken as %q", got)
	}
}

func TestCorrelation(t *testing.T) {
	const uuid = "0c8d0f0e-7c1e-4a5b-9c3f-0d4f5b8b2a11"
	if got := correlation(uuid); got.String() != uuid {
		t.Errorf("a UUID became %s", got)
	}
	seven, again, eight := correlation("order-7"), correlation("order-7"), correlation("order-8")
	if seven != again || seven == eight || seven.IsZero() {
		t.Error("a name does not always give one id of its own")
	}
	if short := strings.ReplaceAll(uuid, "-", ""); correlation(short) == correlation(uuid) {
		t.Error("without hyphens it is another request id, and must give another correlation")
	}
}

package rest

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// A client's request id is used only if it is well formed.
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

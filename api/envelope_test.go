package api

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// patience bounds a test's wait for what must happen; promptly is how long it waits
// for what must not.
const (
	patience = 10 * time.Second
	promptly = 300 * time.Millisecond
)

// quick are limits whose timeouts a test can wait for.
func quick(c *Config) {
	c.Limits.HeaderTimeout, c.Limits.ReadTimeout, c.Limits.IdleTimeout = 200*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond
}

func post(headers, body string) string {
	return "POST /v1/transactions HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + body
}

func get(target string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
}

const jsonType = "Content-Type: application/json\r\n"

// Rows 1 to 6 of the bad inputs, and what else is refused by a request's headers.
func TestBodyIsRefused(t *testing.T) {
	s := newStack(t, quick)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 1<<20))
	_ = z.Close()
	large := s.config.Limits.BodyBytes + 1
	whole := string(submissionOf(testChain, signed(t, newKey(t), testChain, 0)))
	for _, tt := range []struct {
		name, request string
		status        int
		code          event.Refusal
		closes        bool
	}{
		{"declared too large", post(fmt.Sprintf("%sContent-Length: %d\r\n", jsonType, large), "{"), 413, ErrPayloadTooLarge, true},
		{"declared too large and sent", post(fmt.Sprintf("%sContent-Length: %d\r\n", jsonType, large), strings.Repeat(" ", int(large))), 413, ErrPayloadTooLarge, true},
		{"chunked too large", post(jsonType+"Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", large, strings.Repeat(" ", int(large)))), 413, ErrPayloadTooLarge, true},
		{"asks first, too large", post(jsonType+"Expect: 100-continue\r\nContent-Length: 99999999\r\n", ""), 413, ErrPayloadTooLarge, true},
		{"asks first, wrong type", post("Content-Type: text/plain\r\nExpect: 100-continue\r\nContent-Length: 9\r\n", ""), 415, ErrUnsupportedMediaType, true},
		{"gzip", post(fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\nConnection: close\r\n", jsonType, bomb.Len()), bomb.String()), 415, ErrUnsupportedEncoding, true},
		{"encoded twice", post(jsonType+"Content-Encoding: identity\r\nContent-Encoding: br\r\nContent-Length: 2\r\nConnection: close\r\n", "{}"), 415, ErrUnsupportedEncoding, true},
		{"text", post("Content-Type: text/plain\r\nContent-Length: 2\r\n", "{}"), 415, ErrUnsupportedMediaType, false},
		{"no type", post("Content-Length: 2\r\n", "{}"), 415, ErrUnsupportedMediaType, false},
		{"two types", post(jsonType+jsonType+"Content-Length: 2\r\n", "{}"), 415, ErrUnsupportedMediaType, false},
		{"JSON of another kind", post("Content-Type: application/json-patch+json\r\nContent-Length: 2\r\n", "{}"), 415, ErrUnsupportedMediaType, false},
		{"UTF-16", post("Content-Type: application/json; charset=utf-16\r\nContent-Length: 2\r\n", "{}"), 415, ErrUnsupportedMediaType, false},
		{"empty", post(jsonType+"Content-Length: 0\r\n", ""), 400, ErrMalformedJSON, false},
		{"no body", post(jsonType, ""), 400, ErrMalformedJSON, false},
		{"stalls", post(fmt.Sprintf("%sContent-Length: %d\r\n", jsonType, len(whole)+1), whole), 408, ErrRequestTimeout, true},
		{"stalls in a chunk", post(jsonType+"Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s", len(whole)+1, whole)), 408, ErrRequestTimeout, true},
		{"a bad chunk", post(jsonType+"Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"), 400, ErrInvalidRequest, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers, closed := s.raw(tt.request, patience)
			if len(answers) != 1 {
				t.Fatalf("%d answers: %v", len(answers), answers)
			}
			p := wantProblem(t, tt.name, answers[0], tt.status, tt.code)
			if answers[0].closes != tt.closes || !closed {
				t.Errorf("announced to close: %v, closed: %v", answers[0].closes, closed)
			}
			if want := tt.status == http.StatusRequestTimeout; p.Retryable != want {
				t.Errorf("retryable: %v", p.Retryable)
			}
		})
	}
	if events := s.recorded(); len(events) != 0 {
		t.Errorf("%d events were recorded", len(events))
	}
}

// What is cut short never has an effect, also when what came so far would do.
func TestBodyThatBreaksOffHasNoEffect(t *testing.T) {
	handled := make(chan string, 1)
	s := newStack(t, func(c *Config) { c.Requested = func(_, _, code string, _ time.Duration) { handled <- code } })
	whole := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	conn := s.dial()
	_, _ = fmt.Fprintf(conn, "%s", post(fmt.Sprintf("%sContent-Length: %d\r\n", jsonType, len(whole)+1), string(whole)))
	conn.Close() //nolint:errcheck // that is the test
	if code := <-handled; code != "400" {
		t.Errorf("answered %s", code)
	}
	if events := s.recorded(); len(events) != 0 {
		t.Errorf("%d events were recorded", len(events))
	}
}

// A client that asks first is told to go on, and answered.
func TestExpectContinue(t *testing.T) {
	s := newStack(t)
	body := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	answers, _ := s.raw(post(fmt.Sprintf("%sExpect: 100-continue\r\nConnection: close\r\nContent-Length: %d\r\n", jsonType, len(body)), string(body)), patience)
	if len(answers) != 2 || answers[0].status != http.StatusContinue || answers[1].status != http.StatusOK {
		t.Errorf("answers: %v", answers)
	}
}

// Rows 7, 10 to 15: what net/http answers for us must stay what it is.
func TestMalformedRequests(t *testing.T) {
	s := newStack(t)
	const ok = http.StatusOK
	for _, tt := range []struct {
		name, request string
		statuses      []int // any of these; none: no answer at all
	}{
		{"length and chunks", post(jsonType+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), []int{400}},
		{"two lengths", post(jsonType+"Content-Length: 2\r\nContent-Length: 3\r\n", "{}"), []int{400}},
		{"negative length", post(jsonType+"Content-Length: -1\r\n", ""), []int{400}},
		{"gzip, chunked", post(jsonType+"Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), []int{400, 501}},
		{"other expectation", post(jsonType+"Expect: miracle\r\nContent-Length: 2\r\n", "{}"), []int{417}},
		{"header of 16 KiB", "GET /livez HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 16<<10) + "\r\n\r\n", []int{431}},
		{"3,000 headers", "GET /livez HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-A: a\r\n", 3000) + "\r\n", []int{431}},
		{"path of 100 KiB", get("/" + strings.Repeat("a", 100<<10)), []int{431}},
		{"NUL in a header", "GET /livez HTTP/1.1\r\nHost: a\r\nX-A: a\x00b\r\n\r\n", []int{400}},
		{"no host", "GET /livez HTTP/1.1\r\n\r\n", []int{400}},
		{"two hosts", "GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", []int{400}},
		{"space before a colon", "GET /livez HTTP/1.1\r\nHost : a\r\n\r\n", []int{400}},
		{"folded header", "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-A: a\r\n b\r\n\r\n", []int{400, ok}},
		{"HTTP/3.0", "GET /livez HTTP/3.0\r\nHost: a\r\n\r\n", []int{505}},
		{"HTTP/2 in clear", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{400, 505}},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 100) + "\r\n\r\n", []int{400}},
		{"another host", "GET /livez HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-For: 1.2.3.4\r\nConnection: close\r\n\r\n", []int{ok}},
		{"absolute form", get("http://evil.example/livez"), []int{ok}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers, closed := s.raw(tt.request, patience)
			if len(answers) != 1 || !slices.Contains(tt.statuses, answers[0].status) || !closed {
				t.Errorf("closed %v, answers: %v", closed, answers)
			}
		})
	}
	if events := s.recorded(); len(events) != 0 {
		t.Errorf("%d events were recorded", len(events))
	}
}

// Row 8: whoever is slow with the headers is cut off.
func TestSlowHeaders(t *testing.T) {
	s := newStack(t, quick)
	began := time.Now()
	answers, closed := s.raw("GET /livez HTTP/1.1\r\nHost: a\r\nX-A: ", patience)
	if !closed || len(answers) != 0 || time.Since(began) > patience/2 {
		t.Errorf("closed %v after %s, answers: %v", closed, time.Since(began), answers)
	}
}

// Row 9: the slow do not hold up the others, and are cut off.
func TestSlowBodies(t *testing.T) {
	s := newStack(t, quick)
	var slow sync.WaitGroup
	for range 100 {
		slow.Go(func() {
			answers, closed := s.raw(post(jsonType+"Content-Length: 100\r\n", "{"), patience)
			if len(answers) != 1 || answers[0].status != http.StatusRequestTimeout || !closed {
				t.Errorf("closed %v, answers: %v", closed, answers)
			}
		})
	}
	for range 20 {
		if res := s.get("/livez"); res.status != http.StatusOK {
			t.Errorf("livez: %v", res)
		}
	}
	slow.Wait()
}

// Row 13.
func TestMethods(t *testing.T) {
	s := newStack(t)
	hash := "0x" + strings.Repeat("00", 32)
	for _, tt := range []struct{ method, path, allow string }{
		{"FOO", "/v1/transactions", "GET, HEAD, POST"},
		{"TRACE", "/v1/transactions", "GET, HEAD, POST"},
		{"PUT", "/v1/transactions", "GET, HEAD, POST"},
		{"OPTIONS", "/v1/transactions", "GET, HEAD, POST"},
		{"post", "/v1/transactions", "GET, HEAD, POST"},
		{"POST", "/v1/transactions/" + hash, "DELETE, GET, HEAD"},
		{"PATCH", "/v1/transactions/" + hash + "/events", "GET, HEAD"},
		{"POST", "/health", "GET, HEAD"},
		{"DELETE", "/livez", "GET, HEAD"},
		{"POST", "/readyz", "GET, HEAD"},
	} {
		answers, _ := s.raw(tt.method+" "+tt.path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", patience)
		if len(answers) != 1 {
			t.Fatalf("%s %s: %v", tt.method, tt.path, answers)
		}
		wantProblem(t, tt.method+" "+tt.path, answers[0], http.StatusMethodNotAllowed, ErrMethodNotAllowed)
		if allow := answers[0].header.Get("Allow"); allow != tt.allow {
			t.Errorf("%s %s: Allow: %s", tt.method, tt.path, allow)
		}
	}
	res, err := http.Head("http://" + s.addr + "/health")
	if err != nil || res.StatusCode != http.StatusOK || res.ContentLength <= 0 {
		t.Errorf("HEAD /health: %v, %v", res, err)
	}
	res.Body.Close() //nolint:errcheck // it has none
}

// Row 16: pipelined requests are answered one by one, in order.
func TestPipelined(t *testing.T) {
	s := newStack(t)
	const n = 1000
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "GET /livez HTTP/1.1\r\nHost: a\r\nX-Request-Id: r%d\r\n", i)
		if i == n-1 {
			all.WriteString("Connection: close\r\n")
		}
		all.WriteString("\r\n")
	}
	answers, _ := s.raw(all.String(), patience)
	if len(answers) != n {
		t.Fatalf("%d answers", len(answers))
	}
	for i, a := range answers {
		if got := a.header.Get("X-Request-Id"); a.status != http.StatusOK || got != fmt.Sprintf("r%d", i) {
			t.Fatalf("answer %d is %d to %s", i, a.status, got)
		}
	}
}

// Row 17: more connections than allowed wait their turn.
func TestConnections(t *testing.T) {
	s := newStack(t, func(c *Config) { c.Limits.Connections = 2 })
	ask := "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
	first, second, third := s.dial(), s.dial(), s.dial()
	defer second.Close() //nolint:errcheck // the test is over with it
	defer third.Close()  //nolint:errcheck // likewise
	// Two are in the middle of a request: an idle one would make room.
	_, _ = io.WriteString(first, ask[:20])
	_, _ = io.WriteString(second, ask[:20])
	_, _ = io.WriteString(third, ask)
	if answers, _ := readAnswers(third, promptly); len(answers) != 0 {
		t.Errorf("the third was served while there was no room: %v", answers)
	}
	first.Close() //nolint:errcheck // makes room
	if answers, _ := readAnswers(third, time.Second); len(answers) != 1 {
		t.Error("the third was not served when there was room")
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	s := newStack(t, quick)
	answers, closed := s.raw("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", patience)
	if len(answers) != 1 || !closed {
		t.Errorf("closed %v, answers: %v", closed, answers)
	}
}

package delivery

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
)

// Rows 1 to 17: faults of a request before its body is read. Many are answered by net/http, and
// must stay so.
func envelopeInputs(t *testing.T) []input {
	large := int(rest.DefaultLimits().BodyBytes) + 1
	whole := string(submissionOf(testChain, signed(t, newKey(t), testChain, 0)))
	sized := func(n int) string { return fmt.Sprintf("%sContent-Length: %d\r\n", jsonType, n) }
	typed := func(contentType string) string {
		return post(contentType+"Connection: close\r\nContent-Length: 2\r\n", "{}")
	}
	const chunked = jsonType + "Transfer-Encoding: chunked\r\n"
	livez := func(headers string) string {
		return "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + headers + "\r\n"
	}
	bomb := gzipBomb(t)
	list := []input{
		{row: 1, what: "a body declared too large", request: post(sized(large), "{"), answer: cuts(413, rest.ErrPayloadTooLarge)},
		{row: 1, what: "a body too large, sent", request: post(sized(large), strings.Repeat(" ", large)), answer: cuts(413, rest.ErrPayloadTooLarge)},
		{row: 1, what: "a chunk too large", request: post(chunked, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", large, strings.Repeat(" ", large))), answer: cuts(413, rest.ErrPayloadTooLarge)},
		{row: 1, what: "chunks too large together", request: post(chunked, strings.Repeat("400\r\n"+strings.Repeat(" ", 1024)+"\r\n", large/1024+1)+"0\r\n\r\n"), answer: cuts(413, rest.ErrPayloadTooLarge)},
		{row: 2, what: "asks whether to send too much", request: post(jsonType+"Expect: 100-continue\r\nContent-Length: 99999999\r\n", ""), answer: cuts(413, rest.ErrPayloadTooLarge)},
		{row: 2, what: "asks whether to send text", request: post("Content-Type: text/plain\r\nExpect: 100-continue\r\nContent-Length: 9\r\n", ""), answer: cuts(415, rest.ErrUnsupportedMediaType)},
		{row: 2, what: "expects a miracle", request: post(jsonType+"Expect: miracle\r\nContent-Length: 2\r\n", "{}"), answer: answers(417)},
		{row: 3, what: "200 MiB as gzip", request: post(sized(len(bomb))+"Content-Encoding: gzip\r\nConnection: close\r\n", bomb), answer: cuts(415, rest.ErrUnsupportedEncoding)},
		{row: 3, what: "two encodings", request: post(sized(2)+"Content-Encoding: identity\r\nContent-Encoding: br\r\nConnection: close\r\n", "{}"), answer: cuts(415, rest.ErrUnsupportedEncoding)},
		{row: 3, what: "200 MiB as gzip, not inflated", does: gzipIsNotInflated},
		{row: 4, what: "text", request: typed("Content-Type: text/plain\r\n"), answer: refuses(415, rest.ErrUnsupportedMediaType)},
		{row: 4, what: "no type", request: typed(""), answer: refuses(415, rest.ErrUnsupportedMediaType)},
		{row: 4, what: "two types", request: typed(jsonType + jsonType), answer: refuses(415, rest.ErrUnsupportedMediaType)},
		{row: 4, what: "JSON of another kind", request: typed("Content-Type: application/json-patch+json\r\n"), answer: refuses(415, rest.ErrUnsupportedMediaType)},
		{row: 4, what: "UTF-16", request: typed("Content-Type: application/json; charset=utf-16\r\n"), answer: refuses(415, rest.ErrUnsupportedMediaType)},
		{row: 5, what: "an empty body", request: post(sized(0)+"Connection: close\r\n", ""), answer: refuses(400, rest.ErrMalformedJSON)},
		{row: 5, what: "no body", request: post(jsonType+"Connection: close\r\n", ""), answer: refuses(400, rest.ErrMalformedJSON)},
		{row: 5, what: "spaces", request: posted(" \r\n\t"), answer: refuses(400, rest.ErrMalformedJSON)},
		{row: 6, what: "stalls a byte before the end", request: post(sized(len(whole)+1), whole), answer: cuts(408, rest.ErrRequestTimeout)},
		{row: 6, what: "stalls in a chunk", request: post(chunked, fmt.Sprintf("%x\r\n%s", len(whole)+1, whole)), answer: cuts(408, rest.ErrRequestTimeout)},
		{row: 6, what: "stalls before the last chunk", request: post(chunked, fmt.Sprintf("%x\r\n%s\r\n", len(whole), whole)), answer: cuts(408, rest.ErrRequestTimeout)},
		{row: 6, what: "hangs up a byte before the end", does: hangUp},
		{row: 7, what: "a length and chunks", request: post(jsonType+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), answer: answers(400)},
		{row: 7, what: "two lengths", request: post(jsonType+"Content-Length: 2\r\nContent-Length: 3\r\n", "{}"), answer: answers(400)},
		{row: 7, what: "a negative length", request: post(jsonType+"Content-Length: -1\r\n", ""), answer: answers(400)},
		{row: 7, what: "gzip, chunked", request: post(jsonType+"Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), answer: answers(400, 501)},
		{row: 7, what: "a bad chunk", request: post(chunked, "zz\r\n{}\r\n0\r\n\r\n"), answer: cuts(400, rest.ErrInvalidRequest)},
		{row: 7, what: "a request within a request", request: post(jsonType+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+posted(whole)), answer: answers(400)},
		{row: 8, what: "a header without end", request: "GET /livez HTTP/1.1\r\nHost: a\r\nX-A: ", answer: isSilent},
		{row: 8, what: "a header byte by byte", does: slowHeaders},
		{row: 9, what: "500 bodies, a byte a second", does: slowBodies},
		{row: 10, what: "a header of 16 KiB", request: livez("X-A: " + strings.Repeat("a", 16<<10) + "\r\n"), answer: answers(431)},
		{row: 10, what: "3,000 headers", request: livez(strings.Repeat("X-A: a\r\n", 3000)), answer: answers(431)},
		{row: 10, what: "a path of 100 KiB", request: get("/" + strings.Repeat("a", 100<<10)), answer: answers(431)},
		{row: 11, what: "NUL in a header", request: livez("X-A: a\x00b\r\n"), answer: answers(400)},
		{row: 11, what: "no host", request: "GET /livez HTTP/1.1\r\n\r\n", answer: answers(400)},
		{row: 11, what: "two hosts", request: livez("Host: b\r\n"), answer: answers(400)},
		{row: 11, what: "a space before a colon", request: "GET /livez HTTP/1.1\r\nHost : a\r\n\r\n", answer: answers(400)},
		{row: 12, what: "a folded header", request: livez("X-A: a\r\n b\r\n"), answer: answers(400, 200)},
		{row: 12, what: "a length that is folded", request: post(jsonType+"Connection: close\r\nContent-Length:\r\n 2\r\n", "{}"), answer: answers(400)},
		{row: 14, what: "HTTP/3.0", request: "GET /livez HTTP/3.0\r\nHost: a\r\n\r\n", answer: answers(505)},
		{row: 14, what: "HTTP/2 in clear", request: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", answer: answers(400, 505)},
		{row: 14, what: "TLS", request: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 100) + "\r\n\r\n", answer: answers(400)},
		{row: 15, what: "another host", request: "GET /livez HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: a\r\nConnection: close\r\n\r\n", answer: answers(403)},
		{row: 15, what: "an absolute URI", request: get("http://evil.example/livez"), answer: answers(403)},
		{row: 15, what: "another host, asked where a list goes on", does: hostIsNotRepeated},
		{row: 15, what: "an invented address", does: addressIsNotBelieved},
		{row: 16, what: "1,000 requests in one go", does: pipelined},
		{row: 16, what: "1,000 requests in one go, over the rate", does: pipelinedOverTheRate},
		{row: 17, what: "10,000 connections that idle", does: idleCrowd},
	}
	return append(list, methodInputs()...)
}

// gzipBomb is a short text that inflates to 200 MiB.
func gzipBomb(t *testing.T) string {
	t.Helper()
	var part bytes.Buffer
	z := gzip.NewWriter(&part)
	_, err := z.Write(make([]byte, 1<<20))
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return strings.Repeat(part.String(), 200) // concatenated gzip members are one text
}

func gzipIsNotInflated(t *testing.T, s *stack) int {
	bomb := gzipBomb(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answers, _ := s.raw(post(fmt.Sprintf("%sContent-Length: %d\r\nContent-Encoding: gzip\r\nConnection: close\r\n", jsonType, len(bomb)), bomb), patience)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; len(answers) != 1 || took > 16<<20 {
		t.Errorf("%d bytes were allocated; answers: %v", took, answers)
	}
	return 0
}

// Row 13.
func methodInputs() (list []input) {
	hash := "0x" + strings.Repeat("00", 32)
	for _, tt := range []struct{ method, path, allow string }{
		{"FOO", "/v1/transactions", "GET, HEAD, POST"},
		{"TRACE", "/v1/transactions", "GET, HEAD, POST"},
		{"PUT", "/v1/transactions", "GET, HEAD, POST"},
		{"OPTIONS", "/v1/transactions", "GET, HEAD, POST"},
		{"post", "/v1/transactions", "GET, HEAD, POST"},
		{"CONNECT", "/v1/transactions", "GET, HEAD, POST"},
		{"POST", "/v1/transactions/" + hash, "DELETE, GET, HEAD"},
		{"PATCH", "/v1/transactions/" + hash + "/events", "GET, HEAD"},
		{"POST", "/health", "GET, HEAD"},
		{"DELETE", "/livez", "GET, HEAD"},
		{"POST", "/readyz", "GET, HEAD"},
	} {
		refused := refuses(http.StatusMethodNotAllowed, rest.ErrMethodNotAllowed)
		list = append(list, input{
			row: 13, what: tt.method + " " + tt.path,
			request: tt.method + " " + tt.path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			answer: func(t *testing.T, answers []response, closed bool) {
				refused(t, answers, closed)
				if allow := answers[0].header.Get("Allow"); allow != tt.allow {
					t.Errorf("Allow: %s, want %s", allow, tt.allow)
				}
			},
		})
	}
	return list
}

// The bytes that arrived would be a valid request, and have no effect.
func hangUp(t *testing.T, _ *stack) int {
	handled := make(chan string, 1)
	s := newStack(t, func(c *Config) { c.Requested = func(_, _, code string, _ time.Duration) { handled <- code } })
	whole := submissionOf(testChain, signed(t, newKey(t), testChain, 0))
	conn := s.dial()
	_, _ = fmt.Fprintf(conn, "%s", post(fmt.Sprintf("%sContent-Length: %d\r\n", jsonType, len(whole)+1), string(whole)))
	conn.Close() //nolint:errcheck // that is the test
	if code := <-handled; code != "400" || s.events(t) != 0 {
		t.Errorf("answered %s, %d events", code, s.events(t))
	}
	return 0
}

// drip sends the rest of a request byte by byte until the server closes the connection.
func (s *stack) drip(head, rest string, every time.Duration) (answers []response, closed bool) {
	conn := s.dial()
	defer conn.Close() //nolint:errcheck // the test is over with it
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(every)
		defer tick.Stop()
		_, err := io.WriteString(conn, head)
		for i := 0; i < len(rest) && err == nil; i++ {
			select {
			case <-tick.C:
				_, err = io.WriteString(conn, rest[i:i+1])
			case <-over:
				return
			}
		}
	}()
	answers, closed = readAnswers(conn, 3*patience)
	close(over)
	<-stopped
	return answers, closed
}

func slowHeaders(t *testing.T, s *stack) int {
	began := time.Now()
	answers, closed := s.drip("GET /livez HTTP/1.1\r\nHost: a\r\nX-A: ", strings.Repeat("a", 10_000), 5*time.Millisecond)
	if isSilent(t, answers, closed); time.Since(began) > patience/2 {
		t.Errorf("closed after %s", time.Since(began))
	}
	return 0
}

// Slow clients are cut off when their time is over, and do not slow others before that. The
// test sends a byte in a fifteenth of the time for a body, which is a byte per second.
func slowBodies(t *testing.T, _ *stack) int {
	const crowd = 500
	s := newStack(t, func(c *Config) { c.Limits.ReadTimeout = 3 * time.Second })
	body := string(submissionOf(testChain, signed(t, newKey(t), testChain, 0)))
	head := post(fmt.Sprintf("%sContent-Length: %d\r\n", jsonType, len(body)), "")
	var told atomic.Int64
	served := s.besieged(t, patience, func() {
		var slow sync.WaitGroup
		for range crowd {
			slow.Go(func() {
				switch answers, closed := s.drip(head, body, s.config.Limits.ReadTimeout/15); {
				case !closed || len(answers) > 1 || len(answers) == 1 && answers[0].status != http.StatusRequestTimeout:
					t.Errorf("closed %v, answers: %v", closed, answers)
				case len(answers) == 1:
					told.Add(1)
				}
			})
		}
		slow.Wait()
	})
	// Bytes that a client sends after the answer may make it lose the answer.
	if n := told.Load(); n < crowd*9/10 {
		t.Errorf("%d of %d were told why", n, crowd)
	}
	if n := s.events(t); n != served {
		t.Errorf("%d events for %d innocent clients", n, served)
	}
	return 0
}

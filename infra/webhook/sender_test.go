package webhook

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// read reads a request from a connection, including the body.
func read(conn net.Conn) (*http.Request, []byte, error) {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(r.Body)
	return r, body, err
}

// answers reads one request and answers with text.
func answers(text string) func(*sink, net.Conn) {
	return func(_ *sink, conn net.Conn) {
		if _, _, err := read(conn); err == nil {
			_, _ = io.WriteString(conn, text)
		}
	}
}

// trickle writes text without end, a byte at a time.
func trickle(head, text string, pause time.Duration) func(*sink, net.Conn) {
	return func(s *sink, conn net.Conn) {
		if _, _, err := read(conn); err != nil {
			return
		}
		if _, err := io.WriteString(conn, head); err != nil {
			return
		}
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
			case <-s.ended:
				return
			}
			if _, err := conn.Write([]byte{text[i%len(text)]}); err != nil {
				return
			}
		}
	}
}

// flood writes text repeatedly while the client accepts it.
func flood(head, text string) func(*sink, net.Conn) {
	return func(_ *sink, conn net.Conn) {
		if _, _, err := read(conn); err != nil {
			return
		}
		_, err := io.WriteString(conn, head)
		for err == nil {
			_, err = io.WriteString(conn, text)
		}
	}
}

// closes is a sink that hangs up before answering.
func closes(*sink, net.Conn) {}

// silent reads and never answers.
func silent(s *sink, conn net.Conn) {
	if _, _, err := read(conn); err == nil {
		<-s.ended
	}
}

func TestOutcomes(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	page := strings.Repeat("0123456789abcdef", 4<<10)
	outcome := func(class notice.Class, cause notice.Cause, status int) notice.Outcome {
		return notice.Outcome{Class: class, Cause: cause, Status: status}
	}
	later := func(status int, pause time.Duration) notice.Outcome {
		return notice.Outcome{Class: notice.Later, Cause: notice.Status, Status: status, RetryAfter: pause}
	}
	answer := func(status int, header string) func(*sink, net.Conn) {
		return answers(fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: 2\r\n%s\r\nno", status, header))
	}
	for _, c := range []struct {
		name  string
		serve func(*sink, net.Conn)
		want  notice.Outcome
	}{
		{"200", answers(ok + "Content-Length: 2\r\n\r\nok"), outcome(notice.Delivered, "", 200)},
		{"204", answers("HTTP/1.1 204 No Content\r\n\r\n"), outcome(notice.Delivered, "", 204)},
		{"299", answer(299, ""), outcome(notice.Delivered, "", 299)},
		{"cut after 200", answers(ok + "Content-Length: 1000\r\n\r\n{"), outcome(notice.Delivered, "", 200)},
		{"cut in the header", answers(ok + "X: a\r\n"), outcome(notice.Unknown, notice.Cut, 0)},
		{"cut before the answer", closes, outcome(notice.Unknown, notice.Cut, 0)},
		{"410", answer(410, ""), outcome(notice.Gone, notice.Status, 410)},
		{"404", answer(404, "Retry-After: 7\r\n"), outcome(notice.Failed, notice.Status, 404)},
		{"500", answer(500, ""), outcome(notice.Failed, notice.Status, 500)},
		{"429", answer(429, "Retry-After: 7\r\n"), later(429, 7*time.Second)},
		{"429 without a time", answer(429, ""), later(429, 0)},
		{"429 with a wrong time", answer(429, "Retry-After: -7\r\n"), later(429, 0)},
		{"429 for ever", answer(429, "Retry-After: 99999999999999999999\r\n"), later(429, 0)},
		{"503", answer(503, "Date: Sat, 21 Nov 2026 10:00:00 GMT\r\nRetry-After: Sat, 21 Nov 2026 10:01:00 GMT\r\n"), later(503, time.Minute)},
		{"503 in the past", answer(503, "Date: Sat, 21 Nov 2026 10:00:00 GMT\r\nRetry-After: Sat, 21 Nov 2026 09:01:00 GMT\r\n"), later(503, 0)},
		{"redirect to metadata", answer(302, "Location: http://169.254.169.254/latest/\r\n"), outcome(notice.Failed, notice.Status, 302)},
		{"endless body", flood(ok+"\r\n", page), outcome(notice.Delivered, "", 200)},
		{"a body of 1 GB", flood(ok+"Content-Length: 1073741824\r\n\r\n", page), outcome(notice.Delivered, "", 200)},
		{"compressed", flood(ok+"Content-Encoding: gzip\r\n\r\n", page), outcome(notice.Delivered, "", 200)},
		{"a slow body", trickle(ok+"Content-Length: 100000\r\n\r\n", "a", 300*time.Millisecond), outcome(notice.Delivered, "", 200)},
		{"slow header", trickle("", "HTTP/1.1 200 OK\r\nX: and so on", 300*time.Millisecond), outcome(notice.Unknown, notice.Timeout, 0)},
		{"no answer", silent, outcome(notice.Unknown, notice.Timeout, 0)},
		{"huge header", flood(ok, "X: "+page+"\r\n"), outcome(notice.Unknown, notice.Protocol, 0)},
		{"header without end", flood(ok, strings.Repeat("X: a\r\n", 10_000)), outcome(notice.Unknown, notice.Protocol, 0)},
		{"endless 1xx", flood("", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 10_000)), outcome(notice.Unknown, notice.Protocol, 0)},
		{"101", answers("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), outcome(notice.Failed, notice.Status, 101)},
		{"no HTTP", answers("220 smtp.example.org ESMTP\r\n"), outcome(notice.Unknown, notice.Protocol, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSink(t, "127.0.0.1:0", sinkName, nil, c.serve)
			timeout := 30 * time.Second
			if c.want.Cause == notice.Timeout {
				timeout = 3 * time.Second // long enough to connect
			}
			sender := newSenderWithin(t, timeout, loopbackOnly(s.port), s.roots)
			got := sender.Send(t.Context(), endpoint(t, s), Message{ID: "msg_1", Body: []byte(`{}`)})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if calls := s.calls.Load(); calls != 1 {
				t.Errorf("%d connections", calls)
			}
		})
	}
}

func endpoint(t *testing.T, s *sink) Endpoint {
	return Endpoint{URL: fmt.Sprintf("https://%s:%d/hook?key=1", sinkName, s.port), Secrets: []Secret{newSecret(t)}}
}

func TestWhatIsSent(t *testing.T) {
	type got struct {
		*http.Request
		body []byte
	}
	requests := make(chan got, 2)
	s := newSink(t, "127.0.0.1:0", sinkName, nil, func(_ *sink, conn net.Conn) {
		for {
			r, body, err := read(conn)
			if err != nil {
				return
			}
			requests <- got{r, body}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	sender := newSender(t, loopbackOnly(s.port), s.roots)
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	sender.now = func() time.Time { return now }
	e := endpoint(t, s)
	e.Secrets = append(e.Secrets, newSecret(t))
	ping := Ping("msg_1", now)
	for range 2 {
		if o := sender.Send(t.Context(), e, ping); o.Class != notice.Delivered {
			t.Fatalf("%+v", o)
		}
		r := <-requests
		want := http.Header{
			"Content-Type": {"application/json"}, "User-Agent": {"test"}, "Content-Length": {"60"},
			"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {"1795255200"},
			"Webhook-Signature": {Sign(e.Secrets, "msg_1", now, ping.Body)},
		}
		if diff := cmp.Diff(want, r.Header); diff != "" {
			t.Error(diff)
		}
		if r.Method != "POST" || r.RequestURI != "/hook?key=1" || string(r.body) != `{"type":"ping","timestamp":"2026-11-21T10:00:00Z","data":{}}` {
			t.Errorf("%s %s %s", r.Method, r.RequestURI, r.body)
		}
	}
	if calls := s.calls.Load(); calls != 1 {
		t.Errorf("%d connections for two messages", calls)
	}
}

func TestUntrusted(t *testing.T) {
	serve := answers("HTTP/1.1 200 OK\r\n\r\n")
	named := newSink(t, "127.0.0.1:0", "other.example.org", nil, serve)
	unknown := newSink(t, "127.0.0.1:0", sinkName, nil, serve)
	old := newSink(t, "127.0.0.1:0", sinkName, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11; c.MinVersion = tls.VersionTLS10 }, serve)
	for what, c := range map[string]struct {
		*sink
		sender *Sender
	}{
		"another's name": {named, newSender(t, loopbackOnly(named.port), named.roots)},
		"unknown issuer": {unknown, newSender(t, loopbackOnly(unknown.port), named.roots)},
		"TLS 1.1":        {old, newSender(t, loopbackOnly(old.port), old.roots)},
	} {
		want := notice.Outcome{Class: notice.Failed, Cause: notice.TLS}
		if got := c.sender.Send(t.Context(), endpoint(t, c.sink), Ping("a", time.Now())); got != want || c.calls.Load() != 1 {
			t.Errorf("%s: %+v after %d connections", what, got, c.calls.Load())
		}
	}
}

func TestNothingIsSent(t *testing.T) {
	s := newSink(t, "127.0.0.1:0", sinkName, nil, closes)
	sender := newSender(t, loopbackOnly(s.port), s.roots)
	good, secret := endpoint(t, s), newSecret(t)
	for what, c := range map[string]struct {
		e     Endpoint
		m     Message
		cause notice.Cause
	}{
		"no id":            {good, Message{}, notice.Unfit},
		"a dot in the id":  {good, Message{ID: "a.b"}, notice.Unfit},
		"a long id":        {good, Message{ID: strings.Repeat("a", IDMax+1)}, notice.Unfit},
		"a large body":     {good, Message{ID: "a", Body: make([]byte, BodyMax+1)}, notice.Unfit},
		"no secret":        {Endpoint{URL: good.URL}, Message{ID: "a"}, notice.Unfit},
		"an empty secret":  {Endpoint{URL: good.URL, Secrets: make([]Secret, 1)}, Message{ID: "a"}, notice.Unfit},
		"too many secrets": {Endpoint{URL: good.URL, Secrets: make([]Secret, SecretsMax+1)}, Message{ID: "a"}, notice.Unfit},
		"http":             {Endpoint{URL: strings.Replace(good.URL, "https", "http", 1), Secrets: []Secret{secret}}, Message{ID: "a"}, notice.Forbidden},
		"an address":       {Endpoint{URL: strings.Replace(good.URL, sinkName, "127.0.0.2", 1), Secrets: []Secret{secret}}, Message{ID: "a"}, notice.Forbidden},
	} {
		want := notice.Outcome{Class: notice.Failed, Cause: c.cause}
		if got := sender.Send(t.Context(), c.e, c.m); got != want {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if s.calls.Load() != 0 {
		t.Errorf("%d connections", s.calls.Load())
	}
}

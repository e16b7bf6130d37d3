package delivery

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Limits for answering arbitrary bytes. They are far above the real cost, and low enough that
// no user would notice.
const (
	fuzzTime   = time.Second
	fuzzFloor  = 1 << 20 // bytes, for any input
	fuzzFactor = 64      // and for each byte of the input
)

// bounded runs do within the limits. A run over the limits may have been slowed by other
// processes, so it is repeated: the lowest cost counts.
func bounded(t *testing.T, size int, do func()) {
	t.Helper()
	var took time.Duration
	var spent uint64
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		do()
		took = time.Since(began)
		runtime.ReadMemStats(&after)
		spent = after.TotalAlloc - before.TotalAlloc
		if took < fuzzTime && spent < uint64(fuzzFloor+fuzzFactor*size) { //nolint:gosec // positive
			return
		}
	}
	t.Errorf("%d bytes took %s and %d bytes of memory", size, took, spent)
}

// asking parses a request like the server; nil if net/http refuses it.
func asking(head string, body []byte) *http.Request {
	text := fmt.Sprintf("%s\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", head, len(body))
	r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(text), bytes.NewReader(body))))
	if err != nil {
		return nil
	}
	r.RemoteAddr = "192.0.2.1:1"
	return r
}

// answered lets a handler answer a request whose client leaves soon. The answer must be a
// success or a problem of the table, and never an internal error.
func answered(t *testing.T, h http.Handler, make func() *http.Request) (last *httptest.ResponseRecorder) {
	t.Helper()
	r := make()
	if r == nil {
		return nil
	}
	bounded(t, int(r.ContentLength)+len(r.RequestURI), func() {
		ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer leave()
		last = httptest.NewRecorder()
		h.ServeHTTP(last, make().WithContext(ctx))
	})
	checkClosed(t, last.Code, last.Header(), last.Body.Bytes())
	return last
}

func checkClosed(t *testing.T, status int, header http.Header, body []byte) {
	t.Helper()
	if status < http.StatusBadRequest {
		if status < 200 || status >= 300 {
			t.Errorf("answered %d", status)
		}
		return
	}
	var p rest.Problem
	if err := json.Unmarshal(body, &p); err != nil || header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("answered %d %s: %s", status, header.Get("Content-Type"), body)
	}
	for _, k := range allKinds() {
		if string(k.Code) == p.Code && k.Status == status && p.Status == status && p.Title == k.Title && p.Type == "/problems/"+p.Code && k.Code != internal {
			return
		}
	}
	t.Errorf("no row of the table: %d %s", status, body)
}

// FuzzSubmit posts arbitrary submissions, and fragments of transactions.
func FuzzSubmit(f *testing.F) {
	s := newStack(f)
	h := New(s.config)
	raw := signed(f, newKey(f), testChain, 0)
	f.Add("", submissionOf(testChain, raw))
	f.Add("validate=only", submissionOf(testChain, raw, raw[:20]))
	f.Add("wait=executed&timeout=1", submissionOf(1, raw))
	f.Add("", []byte(`{"chainId":42431,"transactions":["0x76c0","0x","zz"]}`))
	f.Add("a=%zz", []byte(`{"transactions":[null],"chainId":1e9}`))
	for i, v := range vectors(f) {
		if i%6 == 0 {
			f.Add("validate=only", submissionOf(v.ChainID, v.raw(f)))
		}
	}
	f.Fuzz(func(t *testing.T, query string, body []byte) {
		res := answered(t, h, func() *http.Request { return asking("POST /v1/transactions?"+query+" HTTP/1.1", body) })
		if res == nil || res.Code >= http.StatusBadRequest {
			return
		}
		var out struct{ Results []result }
		if err := json.Unmarshal(res.Body.Bytes(), &out); err != nil || len(out.Results) == 0 {
			t.Fatalf("answered %s", res.Body)
		}
		for i, r := range out.Results {
			if r.OK == (r.Problem.Code != "") || !r.OK && r.Problem.Code == string(internal) {
				t.Errorf("result %d: %+v", i, r)
			}
		}
	})
}

// FuzzCancel sends arbitrary authorizations for a cancel.
func FuzzCancel(f *testing.F) {
	c := newCancelStack(f)
	h := New(c.config)
	sender, id := c.sender.String(), c.key.Group().String()
	f.Add(sender, id, "", "Signature "+c.good(), []byte(nil))
	f.Add(sender, id, "?chainId=42431", "", c.typed(testChain, c.soon()))
	f.Add(someone, someGroup, "?chainId=5", "signature 0x00", []byte(`{"expires":1,"signature":"0x02"}`))
	f.Add("0x%2e", "..", "?x", "Bearer wt_", []byte(`{}`))
	for _, v := range vectors(f)[:3] {
		f.Add(*v.Sender, someGroup, "", "Signature "+*v.Raw, []byte(nil))
	}
	f.Fuzz(func(t *testing.T, sender, id, query, authorization string, body []byte) {
		answered(t, h, func() *http.Request {
			return asking("POST "+cancelPath(sender, id, query)+" HTTP/1.1\r\nAuthorization: "+authorization, body)
		})
	})
}

// FuzzQuery requests arbitrary paths.
func FuzzQuery(f *testing.F) {
	s := newStack(f)
	key := newKey(f)
	raws := [][]byte{signed(f, key, testChain, 0), signed(f, key, testChain, 1)}
	s.submit(raws...)
	s.catchUp()
	h := New(s.config)
	hash := chain.Keccak(raws[0]).String()
	for _, target := range []string{
		"/", "/health", "/docs", "/v1/transactions", "/v1/transactions?limit=1&status=queued&sender=" + someone,
		"/v1/transactions?limit=1&cursor=" + cursorOf(f, s.config.Config, 2), "/v1/transactions?ungrouped=true&groupId=" + someGroup,
		"/v1/transactions/" + hash, "/v1/transactions/" + hash + "?wait=final&timeout=1ms", "/v1/transactions/" + hash + "/events?after=1",
		"/v1/senders/" + someone + "/groups?active=true&limit=3", "/v1/senders/" + someone + "/groups/" + someGroup + "?chainId=1",
		"/v1/transactions/%2e%2e%2f?chainId=%00", "//v1/../%zz;", "/openapi.json?x=y",
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if strings.HasPrefix(target, "/v1/events") {
			return // see FuzzFollow
		}
		answered(t, h, func() *http.Request { return asking("GET "+target+" HTTP/1.1", nil) })
	})
}

// requestID is the form of request ids.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// FuzzHeaders sends arbitrary client headers.
func FuzzHeaders(f *testing.F) {
	keys := newRing(f)
	s := newStack(f, keys.config)
	s.config.Idempotency = rest.Idempotency{Requests: s.db.Requests(), Keep: time.Hour, Hold: time.Minute}
	h := New(s.config)
	token := keys.Scoped(access.Submit)
	body := submissionOf(testChain, signed(f, newKey(f), testChain, 0))
	f.Add("Bearer "+token, "", "a-1", "id", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "203.0.113.9", "application/json")
	f.Add("", token, `"a-1"`, "", "", "1.1.1.1, [::1]:4,x", `application/json; charset="utf-8"`)
	f.Add("Bearer wt_0011223344556677_"+strings.Repeat("0", 64), token[:40], "a b", "\u200b", "ff-", "", "text/plain;;")
	f.Fuzz(func(t *testing.T, authorization, apiKey, idempotency, id, trace, forwarded, contentType string) {
		res := answered(t, h, func() *http.Request {
			r := asking("POST /v1/transactions?validate=only HTTP/1.1", body)
			for name, value := range map[string]string{
				"Authorization": authorization, "X-Api-Key": apiKey, "Idempotency-Key": idempotency, "X-Request-Id": id,
				"Traceparent": trace, "X-Forwarded-For": forwarded, "Content-Type": contentType,
			} {
				if value != "" {
					r.Header[name] = []string{value}
				}
			}
			return r
		})
		if got := res.Header().Get("X-Request-Id"); !requestID.MatchString(got) {
			t.Errorf("the request id %q", got)
		}
		if res.Code == http.StatusOK && !strings.Contains(authorization+apiKey, token) {
			t.Errorf("let in with %q and %q", authorization, apiKey)
		}
	})
}

// leaver is a stream's client that leaves after the first bytes.
type leaver struct {
	*httptest.ResponseRecorder
	leave func()
}

func (w leaver) Flush() { w.leave() }

// A stream with any starting point begins there or is refused.
func FuzzFollow(f *testing.F) {
	s := newStack(f)
	key := newKey(f)
	s.submit(signed(f, key, testChain, 0), signed(f, key, testChain, 1), signed(f, key, testChain, 2))
	h := New(s.config)
	f.Add("", "1", "")
	f.Add("?after=0&name=tx.&chainId=42431", "", typeLines)
	f.Add("?after=3", "2", "text/html, "+typeLines+";q=0.1")
	f.Add("?sender="+someone+"&groupId="+someGroup+"&stream=tx-", "18446744073709551616", "*/*")
	f.Add("?hash=0x"+digits+"&after=-1", "+1", typeSSE)
	f.Fuzz(func(t *testing.T, query, last, accept string) {
		r := asking("GET /v1/events"+query+" HTTP/1.1", nil)
		if r == nil || r.URL.Path != "/v1/events" {
			return
		}
		if last != "" {
			r.Header["Last-Event-Id"] = []string{last}
		}
		r.Header["Accept"] = []string{accept}
		ctx, leave := context.WithTimeout(t.Context(), 2*fuzzTime)
		defer leave()
		w := leaver{httptest.NewRecorder(), leave}
		began := time.Now()
		h.ServeHTTP(w, r.WithContext(ctx))
		if w.Code != http.StatusOK {
			checkClosed(t, w.Code, w.Header(), w.Body.Bytes())
			return
		}
		if took := time.Since(began); took > fuzzTime {
			t.Errorf("it took %s", took)
		}
		begins := last
		if begins == "" {
			begins = r.URL.Query().Get("after")
		}
		if begins == "" {
			begins = "3" // the end
		}
		var at eventlog.Position
		form := "retry: 2000\n:\nid: %d\n"
		if w.Header().Get("Content-Type") == typeLines {
			form = "{\"position\":%d}\n"
		}
		if _, err := fmt.Sscanf(w.Body.String(), form, &at); err != nil || strings.TrimLeft(begins, "0") != strings.TrimLeft(fmt.Sprint(uint64(at)), "0") {
			t.Errorf("after %q comes %q", begins, w.Body)
		}
	})
}

// spoken is a connection on which all input has arrived.
type spoken struct {
	net.Conn
	in    *bytes.Reader
	mu    sync.Mutex
	out   bytes.Buffer
	ended chan struct{}
	once  sync.Once
}

func (c *spoken) Read(b []byte) (int, error) { return c.in.Read(b) }

func (c *spoken) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(b)
}

func (c *spoken) Close() error {
	c.once.Do(func() { close(c.ended) })
	return nil
}

func (c *spoken) LocalAddr() net.Addr                { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)} }
func (c *spoken) RemoteAddr() net.Addr               { return c.LocalAddr() }
func (c *spoken) SetDeadline(time.Time) error        { return nil }
func (c *spoken) SetReadDeadline(t time.Time) error  { return nil }
func (c *spoken) SetWriteDeadline(t time.Time) error { return nil }

// speakers is a listener for such connections.
type speakers struct {
	come  chan net.Conn
	leave chan struct{}
	once  sync.Once
}

func (l *speakers) Accept() (net.Conn, error) {
	select {
	case c := <-l.come:
		return c, nil
	case <-l.leave:
		return nil, net.ErrClosed
	}
}
func (l *speakers) Close() error   { l.once.Do(func() { close(l.leave) }); return nil }
func (l *speakers) Addr() net.Addr { return &net.TCPAddr{} }

// Any bytes on a connection get answers in HTTP, and the connection ends.
func FuzzConnection(f *testing.F) {
	s := newStack(f)
	l := &speakers{come: make(chan net.Conn), leave: make(chan struct{})}
	server := rest.Server(New(s.config), s.config.Limits, s.config.Log)
	over := make(chan error, 1)
	go func() { over <- server.Serve(l) }()
	f.Cleanup(func() {
		if err := server.Close(); err != nil {
			f.Error(err)
		}
		if err := <-over; !errors.Is(err, http.ErrServerClosed) {
			f.Error(err)
		}
	})
	body := string(submissionOf(testChain, signed(f, newKey(f), testChain, 0)))
	for _, seed := range []string{
		posted(body), get("/health"), get("/livez") + get("/livez"), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
		post(jsonType+"Transfer-Encoding: chunked\r\n", "3\r\n{}\n\r\n0\r\nX: y\r\n\r\n"), post(jsonType+"Expect: 100-continue\r\nContent-Length: 9\r\n", "{}"),
		"HEAD /docs HTTP/1.1\r\nHost: a\r\nX-A: a\r\n b\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\nOrigin: https://a\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		c := &spoken{in: bytes.NewReader(said), ended: make(chan struct{})}
		l.come <- c
		select {
		case <-c.ended:
		case <-time.After(patience):
			t.Fatal("the connection does not end")
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if out := c.out.Bytes(); len(out) > 0 && !bytes.HasPrefix(out, []byte("HTTP/1.")) || ours.Match(out) {
			t.Fatalf("answered %s", out)
		}
	})
}

// ours matches an internal error in an answer.
var ours = regexp.MustCompile(`(?m)^HTTP/1\.[01] 500`)

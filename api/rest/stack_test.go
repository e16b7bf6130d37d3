package rest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testChain = 42431

var testTime = time.Unix(1_800_000_000, 0) // January 2027

// patience is how long a test waits for an expected event. promptly is how long it waits to see
// that an event does not happen.
const (
	patience = 10 * time.Second
	promptly = 300 * time.Millisecond
)

// object is a JSON object.
type object = map[string]any

// stack is a front behind a real socket, with the routes for monitors and one more.
type stack struct {
	t      testing.TB
	db     *embedded.DB
	config Config
	addr   string
	since  atomic.Int64 // time since testTime, by the test's clock
}

func (s *stack) now() time.Time { return testTime.Add(time.Duration(s.since.Load())) }

// elapse advances the clock.
func (s *stack) elapse(d time.Duration) { s.since.Add(int64(d)) }

// newStack serves a front until the test ends. change may alter the configuration.
func newStack(t testing.TB, change ...func(*Config)) *stack {
	t.Helper()
	s := &stack{t: t}
	db, err := embedded.Open("", embedded.Options{Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s.db = db
	s.config = Config{
		Health: Health{
			Version: "0.1.0", StartedAt: testTime.Add(-time.Minute), Chains: []chain.ID{testChain, 1, 4217}, RPCEndpoints: 2,
			Database: func(ctx context.Context) error { _, err := db.Log().Head(ctx); return err },
		},
		Limits: DefaultLimits(), CursorKey: bytes.Repeat([]byte{9}, CursorKeyBytes), Hosts: []string{"a", "x"},
		Now: s.now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&s.config)
	}
	front := NewFront(s.config)
	things := Route{Method: http.MethodGet, Path: "/v1/things/{id}", Scope: access.Read, Answer: func(r Request) error {
		return r.Reply(http.StatusOK, struct{}{})
	}}
	s.addr = serve(t, front.Handler(append(front.Health(), things)), s.config.Limits)
	return s
}

// serve serves a handler on a socket until the test ends, and returns its address.
func serve(t testing.TB, h http.Handler, l Limits) string {
	t.Helper()
	listener := resttest.Listen(t)
	resttest.Serve(t, Server(h, l, slog.New(slog.DiscardHandler)), LimitListener(listener, l.Connections, nil))
	return listener.Addr().String()
}

// ring is a keyring that a test controls.
type ring struct{ *resttest.Ring }

func newRing(t testing.TB) ring { return ring{resttest.NewRing(t, testTime)} }

func (r ring) config(c *Config) { c.Access.Keys = r.Keys }

// response is an answer that was read to its end.
type response struct {
	status int
	header http.Header
	body   []byte
}

func (r response) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }

// do sends a request.
func (s *stack) do(method, target string, body []byte, header ...string) response {
	s.t.Helper()
	res, err := s.send(method, target, body, header...)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

// send is do for goroutines other than the test's own.
func (s *stack) send(method, target string, body []byte, header ...string) (response, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+target, bytes.NewReader(body))
	if err != nil {
		return response{}, err
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	content, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, content}, err
}

func (s *stack) get(target string) response {
	s.t.Helper()
	return s.do(http.MethodGet, target, nil)
}

// ask sends a GET with the target unchanged; net/http's client would clean it.
func (s *stack) ask(target string) response {
	s.t.Helper()
	answers, _ := s.raw("GET "+target+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", patience)
	if len(answers) != 1 {
		s.t.Fatalf("GET %.100s: answers %v", target, answers)
	}
	return answers[0]
}

// serves tests that another client is served in time.
func (s *stack) serves(t *testing.T, within time.Duration) {
	t.Helper()
	began := time.Now()
	if res, err := s.send(http.MethodGet, "/v1/things/1", nil, "Connection", "close"); err != nil || res.status != http.StatusOK || time.Since(began) > within {
		t.Errorf("an innocent client was answered %v, %v after %s", res, err, time.Since(began))
	}
}

// raw sends bytes over a new connection and reads the answers, until the server closes the
// connection or the deadline passes.
func (s *stack) raw(text string, deadline time.Duration) (answers []response, closed bool) {
	s.t.Helper()
	conn := s.dial()
	defer conn.Close() //nolint:errcheck // the test is over with it
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(deadline))
	from := bufio.NewReader(conn)
	for {
		res, err := http.ReadResponse(from, nil)
		if err != nil {
			var late net.Error
			return answers, !errors.As(err, &late) || !late.Timeout()
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close() //nolint:errcheck // read to its end
		answers = append(answers, response{res.StatusCode, res.Header, body})
	}
}

func (s *stack) dial() net.Conn {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func unmarshal(t testing.TB, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
}

// wantProblem checks an answer's status and code.
func wantProblem(t testing.TB, what string, res response, status int, code eventlog.Refusal) Problem {
	t.Helper()
	var p Problem
	if res.status != status || res.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: answered %d %s: %s", what, res.status, res.header.Get("Content-Type"), res.body)
		return p
	}
	unmarshal(t, res.body, &p)
	if p.Code != string(code) || p.Type != "/problems/"+string(code) || p.Status != status || p.RequestID != res.header.Get("X-Request-Id") {
		t.Errorf("%s: want %d %s, answered %s", what, status, code, res.body)
	}
	return p
}

// recorded returns all events of the log.
func (s *stack) recorded() (all []eventlog.Recorded) {
	s.t.Helper()
	for batch, err := range s.db.Log().ReadAll(s.t.Context(), 0, eventlog.Filter{}, 1000) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, batch.Events...)
	}
	return all
}

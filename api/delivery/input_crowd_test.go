package delivery

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
)

// Row 15: links to the next page contain no host, with any Host in the request.
func hostIsNotRepeated(t *testing.T, _ *stack) int {
	s := newStack(t, func(c *Config) { c.Hosts = []string{"evil.example"} })
	key := newKey(t)
	s.submit(signed(t, key, testChain, 0), signed(t, key, testChain, 1))
	s.catchUp()
	answers, _ := s.raw("GET http://evil.example/v1/transactions?limit=1 HTTP/1.1\r\nHost: evil.example\r\n"+
		"X-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: gopher\r\nForwarded: host=evil.example\r\nConnection: close\r\n\r\n", patience)
	if len(answers) != 1 || answers[0].status != http.StatusOK {
		t.Fatalf("answers: %v", answers)
	}
	if next(t, answers[0]) == "" || strings.Contains(fmt.Sprint(answers[0].header, string(answers[0].body)), "evil") {
		t.Errorf("answered %v %v", answers[0].header, answers[0])
	}
	return 0
}

// Row 15: only trusted proxies can set the client's address.
func addressIsNotBelieved(t *testing.T, _ *stack) int {
	limited := func(c *Config) { c.Rates.Address = rest.Rate{PerSecond: 1, Burst: 1} }
	from := func(s *stack, client string) int {
		t.Helper()
		return s.do(http.MethodGet, "/health", nil, "X-Forwarded-For", client).status
	}
	s := newStack(t, limited)
	if a, b := from(s, "203.0.113.1"), from(s, "203.0.113.2"); a != 200 || b != 429 {
		t.Errorf("through nobody's proxy: %d, %d", a, b)
	}
	s = newStack(t, limited, func(c *Config) { c.Rates.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	if a, b, again := from(s, "203.0.113.1"), from(s, "203.0.113.2"), from(s, "198.51.100.1, 203.0.113.1"); a != 200 || b != 200 || again != 429 {
		t.Errorf("through our proxy: %d, %d, and the first again %d", a, b, again)
	}
	return 0
}

// inOneGo is the number of requests sent at once.
const inOneGo = 1000

// Row 16: pipelined requests are answered one by one, in order.
func pipelined(t *testing.T, s *stack) int {
	var all strings.Builder
	for i := range inOneGo {
		fmt.Fprintf(&all, "GET /livez HTTP/1.1\r\nHost: a\r\nX-Request-Id: r%d\r\n", i)
		if i == inOneGo-1 {
			all.WriteString("Connection: close\r\n")
		}
		all.WriteString("\r\n")
	}
	return s.besieged(t, patience, func() {
		answers, _ := s.raw(all.String(), patience)
		if len(answers) != inOneGo {
			t.Fatalf("%d answers", len(answers))
		}
		for i, a := range answers {
			if got := a.header.Get("X-Request-Id"); a.status != http.StatusOK || got != fmt.Sprintf("r%d", i) {
				t.Fatalf("answer %d is %d to %s", i, a.status, got)
			}
		}
	})
}

// Row 16: and charged one by one.
func pipelinedOverTheRate(t *testing.T, _ *stack) int {
	s := newStack(t, func(c *Config) { c.Rates.Address = rest.Rate{PerSecond: 1, Burst: 10} })
	requests := strings.Repeat("GET /health HTTP/1.1\r\nHost: a\r\n\r\n", inOneGo-1) + get("/health")
	answers, closed := s.raw(requests, 3*patience)
	counts := map[int]int{}
	for _, a := range answers {
		counts[a.status]++
	}
	if counts[200] != 10 || counts[429] != inOneGo-10 || !closed {
		t.Errorf("answers: %v, closed %v", counts, closed)
	}
	return 0
}

// tally counts the connections that a listener has accepted and that are still open.
type tally struct {
	net.Listener
	accepted, open, most atomic.Int64
}

func (l *tally) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted.Add(1)
	open := l.open.Add(1)
	for most := l.most.Load(); open > most && !l.most.CompareAndSwap(most, open); most = l.most.Load() {
	}
	return &talliedConn{Conn: conn, close: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
}

type talliedConn struct {
	net.Conn
	close func()
}

func (c *talliedConn) Close() error {
	c.close()
	return c.Conn.Close()
}

func (c *talliedConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// queued waits until only few of the connections that have come wait to be accepted. The system
// drops connections beyond its queue, and they retry only after seconds.
func (l *tally) queued(come, few int64) {
	for come-l.accepted.Load() > few {
		<-time.After(time.Millisecond)
	}
}

// Row 17: 10,000 connections, half of them silent, half idle after a request. Only the allowed
// number is open at once, each costs a bounded amount of memory, and active clients still get
// in, in their turn.
func idleCrowd(t *testing.T, _ *stack) int {
	const crowd, most, dialing, waiting = 10_000, 1024, 16, 256
	s := newStack(t)
	s.config.Limits.Connections, s.config.Limits.HeaderTimeout, s.config.Limits.IdleTimeout = most, 300*time.Millisecond, time.Hour
	seen := &tally{Listener: resttest.Listen(t)}
	s.addr = serveOn(t, seen, New(s.config), s.config.Limits)
	before := runtime.NumGoroutine()
	conns := make(chan net.Conn, crowd)
	var come atomic.Int64
	s.besieged(t, patience, func() {
		var knocking sync.WaitGroup
		for range dialing {
			knocking.Go(func() {
				for i := range crowd / dialing {
					seen.queued(come.Add(1), waiting)
					conn := s.dial()
					if i%2 == 0 {
						_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
					}
					conns <- conn
				}
			})
		}
		knocking.Wait()
		if goroutines := runtime.NumGoroutine() - before; goroutines > 2*most+dialing {
			t.Errorf("%d goroutines for at most %d connections", goroutines, most)
		}
	})
	if got := seen.most.Load(); got > most || got < most/2 {
		t.Errorf("%d connections were open at once, at most %d should", got, most)
	}
	t.Logf("%d connections; at most %d were open at once", len(conns), seen.most.Load())
	close(conns)
	for conn := range conns {
		conn.Close() //nolint:errcheck // nothing more is said on it
	}
	return 0
}

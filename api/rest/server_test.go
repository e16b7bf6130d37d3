package rest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

func TestLimitListener(t *testing.T) {
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := LimitListener(inner, 1, nil)
	dial := func() net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() }) //nolint:errcheck // it may be closed already
		return conn
	}
	type accepted struct {
		conn net.Conn
		err  error
	}
	accept := func() chan accepted {
		done := make(chan accepted, 1)
		go func() {
			conn, err := l.Accept()
			done <- accepted{conn, err}
		}()
		return done
	}
	dial()
	dial()
	first := <-accept()
	if first.err != nil {
		t.Fatal(first.err)
	}
	waiting := accept()
	select {
	case <-waiting:
		t.Fatal("a second connection was accepted while the first was open")
	case <-time.After(promptly):
	}
	// Closing twice frees one place.
	first.conn.Close() //nolint:errcheck // only the room counts
	first.conn.Close() //nolint:errcheck // likewise
	second := <-waiting
	if second.err != nil {
		t.Fatal(second.err)
	}
	defer second.conn.Close() //nolint:errcheck // the test is over with it
	waiting = accept()
	select {
	case <-waiting:
		t.Fatal("closing a connection twice made room twice")
	case <-time.After(promptly):
	}
	for range 2 {
		_ = l.Close() // only the inner listener returns an error the second time
	}
	if third := <-waiting; !errors.Is(third.err, net.ErrClosed) {
		t.Errorf("after closing: %v", third.err)
	}
}

// Row 17: idle connections do not keep others out until their idle timeout, and neither do
// connections that send nothing.
func TestIdleConnectionsDoNotKeepOthersOut(t *testing.T) {
	const most, idle = 8, 200
	s := newStack(t, func(c *Config) {
		c.Limits.Connections, c.Limits.IdleTimeout, c.Limits.HeaderTimeout = most, time.Hour, 300*time.Millisecond
	})
	for range most { // silent connections, which hold every place until they are cut
		defer s.dial().Close() //nolint:errcheck // the test is over with it
	}
	for i := range idle {
		conn := s.dial()
		defer conn.Close() //nolint:errcheck // likewise
		if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("connection %d: %v", i, err)
		}
		res.Body.Close() //nolint:errcheck,gosec // the connection idles from here on
	}
}

// fakeListener accepts connections from addresses that a test chooses.
type fakeListener struct {
	net.Listener
	from chan string
}

func (l fakeListener) Accept() (net.Conn, error) {
	from, open := <-l.from
	if !open {
		return nil, net.ErrClosed
	}
	return &fakeConn{from: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from))}, nil
}

type fakeConn struct {
	net.Conn
	from   net.Addr
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr { return c.from }
func (c *fakeConn) Close() error         { c.closed = true; return nil }

// One address does not get all connections, from any ports. A trusted proxy does.
func TestConnectionsOfOneAddress(t *testing.T) {
	inner := fakeListener{from: make(chan string, 100)}
	l := LimitListener(inner, 4, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	var open []net.Conn
	accept := func(want string, from ...string) {
		t.Helper()
		for _, f := range from {
			inner.from <- f
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.RemoteAddr().String(); got != want {
			t.Errorf("accepted %s, want %s", got, want)
		}
		open = append(open, conn)
	}
	closeAll := func() {
		for _, conn := range open {
			conn.Close() //nolint:errcheck // nothing was said on it
			conn.Close() //nolint:errcheck // twice makes room once
		}
		open = nil
	}
	accept("192.0.2.1:1", "192.0.2.1:1")
	accept("192.0.2.1:2", "[::ffff:192.0.2.1]:2")
	accept("192.0.2.2:1", "192.0.2.1:3", "192.0.2.1:4", "192.0.2.2:1")
	closeAll()
	accept("[2001:db8::1]:1", "[2001:db8::1]:1")
	accept("[2001:db8::2]:1", "[2001:db8::2]:1")
	accept("[2001:db8:0:1::1]:1", "[2001:db8::3]:1", "[2001:db8:0:1::1]:1")
	closeAll()
	for _, many := range []string{"10.1.2.3:1", "127.0.0.1:1", "[::1]:1"} {
		for range 4 {
			accept(many, many)
		}
		closeAll()
	}
	if of := l.(*limitListener).of; len(of) != 0 {
		t.Errorf("addresses are kept: %v", of)
	}
}

// Row 17: nor do connections that became idle while there was room.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	const most = 8
	s := newStack(t, func(c *Config) {
		c.Limits.Connections, c.Limits.IdleTimeout, c.Limits.HeaderTimeout = most, time.Hour, time.Hour
	})
	for range most - 1 {
		conn := s.dial()
		defer conn.Close() //nolint:errcheck // the test is over with it
		if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		res.Body.Close() //nolint:errcheck,gosec // the connection idles from here on
	}
	for range most - 1 { // silent connections, which are not cut
		defer s.dial().Close() //nolint:errcheck // likewise
	}
	s.serves(t, patience)
}

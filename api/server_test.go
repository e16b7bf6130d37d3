package api

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestLimitListener(t *testing.T) {
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := LimitListener(inner, 1)
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
	// Closing twice makes room once.
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
		_ = l.Close() // the second time only the inner listener minds
	}
	if third := <-waiting; !errors.Is(third.err, net.ErrClosed) {
		t.Errorf("after closing: %v", third.err)
	}
}

// Row 17: connections that idle do not keep others out for as long as they may idle,
// nor those on which nothing ever comes.
func TestIdleConnectionsDoNotKeepOthersOut(t *testing.T) {
	const most, idle = 8, 200
	s := newStack(t, func(c *Config) {
		c.Limits.Connections, c.Limits.IdleTimeout, c.Limits.HeaderTimeout = most, time.Hour, 300*time.Millisecond
	})
	for range most { // silent ones, which hold every place until they are cut
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

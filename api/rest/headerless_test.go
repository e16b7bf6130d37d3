package rest

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Connections without a complete header hold every place, and many more wait for one. Other
// clients are served all the same, long before the header timeout.
func TestHeaderlessConnectionsKeepNobodyOut(t *testing.T) {
	const most = 8
	s := newStack(t, func(c *Config) {
		c.Limits.Connections, c.Limits.IdleTimeout, c.Limits.HeaderTimeout = most, time.Hour, time.Hour
	})
	for i := range 4 * most {
		conn := s.dial()
		defer conn.Close() //nolint:errcheck // the test is over with it
		if i%2 == 0 {
			continue
		}
		if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: a\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	conn := s.dial()
	defer conn.Close() //nolint:errcheck // the test is over with it
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if !asks(conn) {
		t.Error("another client is not served")
	}
}

// piped are connections to a server on a fake clock.
type piped struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func (p *piped) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *piped) Close() error {
	p.close.Do(func() { close(p.closed) })
	return nil
}

func (p *piped) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// asks sends a request and returns whether it is answered.
func asks(conn net.Conn) bool {
	if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return false
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	return err == nil && res.Body.Close() == nil
}

// A flood of connections without headers displaces its own: idle connections stay open, and a
// header that comes within the grace is answered.
func TestHeaderlessConnectionsDisplaceEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, idle, flood = 16, 8, 100
		limits := DefaultLimits()
		limits.IdleTimeout, limits.HeaderTimeout = time.Hour, time.Hour
		server := Server(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), limits, slog.New(slog.DiscardHandler))
		p := &piped{conns: make(chan net.Conn, flood+most), closed: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(LimitListener(p, most, nil)) }()
		var rests []net.Conn
		for range idle {
			conn := p.dial()
			if !asks(conn) {
				t.Fatal("no answer before the flood")
			}
			rests = append(rests, conn)
		}
		began := time.Now()
		for i := range flood {
			conn := p.dial()
			defer conn.Close() //nolint:errcheck // the test is over with it
			if i%2 == 0 {
				go io.WriteString(conn, "GET / HTTP/1.1\r\n") //nolint:errcheck // it is cut off
			}
		}
		prompt := p.dial()
		synctest.Wait()
		for len(p.conns) > 0 { // accepted once one of the flood is closed
			time.Sleep(headerGrace / 10) // of a fake clock
			synctest.Wait()
		}
		if took, most := time.Since(began), flood/(most-idle)*headerGrace+headerGrace; took > most {
			t.Errorf("the flood delays others for %s; want at most %s", took, most)
		}
		time.Sleep(headerGrace - headerGrace/5) // likewise
		if !asks(prompt) {
			t.Error("a connection is closed before its header could come")
		}
		for i, conn := range rests {
			if !asks(conn) {
				t.Errorf("idle connection %d was closed for connections without headers", i)
			}
			conn.Close() //nolint:errcheck,gosec // the test is over with it
		}
		prompt.Close() //nolint:errcheck,gosec // likewise
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// A connection keeps its place until the grace is over, although another one takes the last place.
func TestHeadersHaveAGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := Server(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), DefaultLimits(), slog.New(slog.DiscardHandler))
		p := &piped{conns: make(chan net.Conn, 2), closed: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(LimitListener(p, 2, nil)) }()
		first := p.dial()
		defer first.Close() //nolint:errcheck // the test is over with it
		synctest.Wait()
		time.Sleep(headerGrace / 2) // of a fake clock
		defer p.dial().Close()      //nolint:errcheck // it takes the last place
		synctest.Wait()
		if !asks(first) {
			t.Error("a connection is closed before its header could come")
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// On a busy machine bytes may have come long before they are read: a connection that is not read
// yet is not closed.
func TestUnreadConnectionsAreNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &piped{conns: make(chan net.Conn, 2), closed: make(chan struct{})}
		l := LimitListener(p, 1, nil)
		client := p.dial()
		defer client.Close()   //nolint:errcheck // the test is over with it
		defer p.dial().Close() //nolint:errcheck // likewise
		first, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan error, 1)
		go func() {
			conn, err := l.Accept()
			if err == nil {
				err = conn.Close()
			}
			second <- err
		}()
		time.Sleep(10 * headerGrace)   // of a fake clock
		go io.WriteString(client, "G") //nolint:errcheck // read below
		if n, err := first.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("it waits for more: %v", err)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}

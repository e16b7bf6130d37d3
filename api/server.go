package api

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// Server makes the server of a listener, with the limits that net/http leaves
// open. Its connections are for [LimitListener] to count.
func Server(h http.Handler, l Limits, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: l.HeaderTimeout, ReadTimeout: l.ReadTimeout,
		WriteTimeout: l.WriteTimeout, IdleTimeout: l.IdleTimeout,
		MaxHeaderBytes: l.HeaderBytes, ConnState: shedIdle,
	}
}

// shedIdle ends a connection that has nothing to do while no other can be accepted:
// many that idle must not keep out those who want something.
func shedIdle(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*countedConn); ok && state == http.StateIdle && c.crowded() {
		conn.Close() //nolint:errcheck,gosec // nobody waits for an answer
	}
}

// LimitListener accepts a connection only while fewer than n are open; the others
// wait in the system's queue.
func LimitListener(l net.Listener, n int) net.Listener {
	return &limitListener{Listener: l, open: make(chan struct{}, n), closed: make(chan struct{})}
}

type limitListener struct {
	net.Listener
	open   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &countedConn{
		Conn: conn, release: func() { <-l.open },
		crowded: func() bool { return len(l.open) == cap(l.open) },
	}, nil
}

func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type countedConn struct {
	net.Conn
	once    sync.Once
	release func()
	crowded func() bool // no other connection can be accepted
}

func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}

// CloseWrite lets net/http end an answer before it drops what the client goes on
// sending: closed at once, the client would lose the answer to a reset.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

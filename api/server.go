package api

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
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

// connectionShare is which part of all connections one address may have open. Nothing
// but this keeps one that only opens them from taking all.
const connectionShare = 2

// LimitListener accepts a connection only while fewer than n are open; the others
// wait in the system's queue. Of one address (of IPv6, one network of 64 bits) it
// closes those beyond its share at once, unless it is this machine's or a trusted
// proxy's, behind which there are many clients.
func LimitListener(l net.Listener, n int, trusted []netip.Prefix) net.Listener {
	return &limitListener{
		Listener: l, open: make(chan struct{}, n), closed: make(chan struct{}),
		trusted: trusted, share: max(n/connectionShare, 1), of: map[netip.Addr]int{},
	}
}

type limitListener struct {
	net.Listener
	open    chan struct{}
	closed  chan struct{}
	once    sync.Once
	trusted []netip.Prefix

	mu    sync.Mutex
	share int
	of    map[netip.Addr]int // open connections
}

func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			<-l.open
			return nil, err
		}
		leave, ok := l.enter(conn.RemoteAddr())
		if !ok {
			conn.Close() //nolint:errcheck,gosec // nothing was said on it
			continue
		}
		return &countedConn{
			Conn: conn, release: func() { leave(); <-l.open },
			crowded: func() bool { return len(l.open) == cap(l.open) },
		}, nil
	}
}

// enter counts a connection of an address, unless it has its share.
func (l *limitListener) enter(from net.Addr) (leave func(), ok bool) {
	tcp, isTCP := from.(*net.TCPAddr)
	if !isTCP {
		return func() {}, true
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	if address.IsLoopback() || isAmong(address, l.trusted) {
		return func() {}, true
	}
	address = subscriber(address)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[address] >= l.share {
		return nil, false
	}
	l.of[address]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.of[address]--; l.of[address] == 0 {
			delete(l.of, address)
		}
	}, true
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

package api

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Server returns the HTTP server of a listener, with the limits that net/http does not set by
// default. Its connections are counted by [LimitListener].
func Server(h http.Handler, l Limits, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: l.HeaderTimeout, ReadTimeout: l.ReadTimeout,
		WriteTimeout: l.WriteTimeout, IdleTimeout: l.IdleTimeout,
		MaxHeaderBytes: l.HeaderBytes, ConnState: shedIdle,
	}
}

// shedIdle tracks which connections are idle. One of them is closed whenever no other
// connection can be accepted: idle connections must not keep out active clients.
func shedIdle(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*countedConn); ok {
		c.listener.rests(c, state == http.StateIdle)
	}
}

// connectionShare is the part of all connections that one address may have open: 1 in
// connectionShare. No other limit keeps a single client from taking all connections.
const connectionShare = 2

// LimitListener accepts a connection only while fewer than n are open; others wait in the
// system's queue. It closes connections of one address (of IPv6, one /64) beyond its share at
// once. Loopback and trusted proxies, which serve many clients, have no share.
func LimitListener(l net.Listener, n int, trusted []netip.Prefix) net.Listener {
	return &limitListener{
		Listener: l, open: make(chan struct{}, n), closed: make(chan struct{}),
		trusted: trusted, share: max(n/connectionShare, 1), of: map[netip.Addr]int{},
		idle: map[*countedConn]struct{}{},
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
	of    map[netip.Addr]int // number of open connections
	idle  map[*countedConn]struct{}
}

// rests records whether a connection is idle.
func (l *limitListener) rests(c *countedConn, idle bool) {
	l.mu.Lock()
	delete(l.idle, c)
	if idle {
		l.idle[c] = struct{}{}
	}
	l.mu.Unlock()
	l.makeRoom()
}

// makeRoom closes an idle connection, if there is one, when all places are taken.
func (l *limitListener) makeRoom() {
	if len(l.open) < cap(l.open) {
		return
	}
	l.mu.Lock()
	var shed *countedConn
	for shed = range l.idle {
		delete(l.idle, shed)
		break
	}
	l.mu.Unlock()
	if shed != nil {
		shed.Close() //nolint:errcheck,gosec // nobody waits for an answer
	}
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
		l.makeRoom()
		return &countedConn{Conn: conn, listener: l, release: func() { leave(); <-l.open }}, nil
	}
}

// enter counts a connection of an address, unless its share is used up.
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
	// listener is the listener that counts the connection.
	listener *limitListener
}

func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}

// CloseWrite lets net/http finish an answer before it drops the rest of the request. If the
// connection were closed at once, a reset could lose the answer.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

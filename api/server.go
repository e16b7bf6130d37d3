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

// shedIdle notes which connections have nothing to do: one of them ends whenever no
// other can be accepted, for many that idle must not keep out those who want something.
func shedIdle(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*countedConn); ok {
		c.listener.rests(c, state == http.StateIdle)
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
	of    map[netip.Addr]int // open connections
	idle  map[*countedConn]struct{}
}

// rests notes that a connection idles, or no longer does.
func (l *limitListener) rests(c *countedConn, idle bool) {
	l.mu.Lock()
	delete(l.idle, c)
	if idle {
		l.idle[c] = struct{}{}
	}
	l.mu.Unlock()
	l.makeRoom()
}

// makeRoom ends an idle connection, if there is one, when all places are taken.
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
	// listener is whose place the connection has.
	listener *limitListener
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

package rest

import (
	"container/list"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Server returns the HTTP server of a listener, with the limits that net/http does not set by
// default. Its connections are counted by [LimitListener].
func Server(h http.Handler, l Limits, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: l.HeaderTimeout, ReadTimeout: l.ReadTimeout,
		WriteTimeout: l.WriteTimeout, IdleTimeout: l.IdleTimeout,
		MaxHeaderBytes: l.HeaderBytes, ConnState: trackState,
	}
}

// trackState tells the listener which connections are idle, and which have sent their first
// header: net/http calls a connection active once it has read a whole header.
func trackState(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*countedConn); ok && state != http.StateNew {
		c.listener.moves(c, state == http.StateIdle)
	}
}

const (
	// connectionShare is the part of all connections that one address may have open: 1 in
	// connectionShare. No other limit keeps a single client from taking all connections.
	connectionShare = 2
	// While more than 1 in headerlessShare of all connections wait for their first header, only
	// these connections are closed for others. Until the header has come, a connection of
	// loopback or of a trusted proxy belongs to no client.
	headerlessShare = 4
	// headerGrace is how long a connection may wait for its first header before it is closed for
	// another connection. Most headers come at once.
	headerGrace = 100 * time.Millisecond
)

// LimitListener accepts a connection only while fewer than n are open; others wait in the
// system's queue. It closes connections of one address (of IPv6, one /64) beyond its share at
// once. Loopback and trusted proxies, which serve many clients, have no share.
//
// When all n are open, it closes a connection that does nothing: the oldest connection that has
// waited for its first header longer than [headerGrace], or else an idle connection. While more than 1 in [headerlessShare]
// wait for their first header, it closes no idle ones: connections without headers displace each
// other.
func LimitListener(l net.Listener, n int, trusted []netip.Prefix) net.Listener {
	return &limitListener{
		Listener: l, open: make(chan struct{}, n), closed: make(chan struct{}),
		trusted: trusted, share: max(n/connectionShare, 1), of: map[netip.Addr]int{},
		headerlessMost: max(n/headerlessShare, 1), idle: map[*countedConn]struct{}{},
	}
}

type limitListener struct {
	net.Listener
	open    chan struct{}
	closed  chan struct{}
	once    sync.Once
	trusted []netip.Prefix

	mu             sync.Mutex
	share          int
	of             map[netip.Addr]int // number of open connections
	headerless     list.List          // of *countedConn without a header, oldest first
	headerlessMost int
	idle           map[*countedConn]struct{}
}

// moves records that a connection has sent its first header, and whether it is idle.
func (l *limitListener) moves(c *countedConn, idle bool) {
	l.mu.Lock()
	l.hasHeader(c)
	delete(l.idle, c)
	if idle {
		l.idle[c] = struct{}{}
	}
	l.mu.Unlock()
	l.makeRoom()
}

// hasHeader ends the wait for a connection's first header. The caller holds mu.
func (l *limitListener) hasHeader(c *countedConn) {
	if c.headerless != nil {
		l.headerless.Remove(c.headerless)
		c.headerless = nil
	}
}

// makeRoom closes a connection that does nothing, if there is one, when all places are taken.
// If there is none, it returns the time until a connection may have waited long enough for its
// header.
func (l *limitListener) makeRoom() (again time.Duration) {
	if len(l.open) < cap(l.open) {
		return 0
	}
	l.mu.Lock()
	shed, again := l.dispensable()
	if shed != nil {
		l.hasHeader(shed) // it is not closed twice
		delete(l.idle, shed)
	}
	l.mu.Unlock()
	if shed != nil {
		shed.Close() //nolint:errcheck,gosec // nobody waits for an answer
	}
	return again
}

// dispensable returns the connection to close for another one, or when to look again. The caller
// holds mu. A connection whose bytes have come, but were not read yet on a busy machine, is not
// dispensable.
func (l *limitListener) dispensable() (shed *countedConn, again time.Duration) {
	again = headerGrace
	for at := l.headerless.Front(); at != nil; at = at.Next() {
		c := at.Value.(*countedConn)
		began := c.reading.Load()
		if began == nil {
			continue
		}
		again = headerGrace - time.Since(*began)
		if again <= 0 {
			return c, 0
		}
		break // younger ones have waited less
	}
	if l.headerless.Len() > l.headerlessMost {
		return nil, again
	}
	for c := range l.idle {
		return c, 0
	}
	return nil, again
}

// place waits for a place for a connection. While there is none, it closes connections that do
// nothing.
func (l *limitListener) place() error {
	look := time.NewTimer(l.makeRoom())
	defer look.Stop()
	for {
		select {
		case l.open <- struct{}{}:
			return nil
		case <-l.closed:
			return net.ErrClosed
		case <-look.C:
			look.Reset(max(l.makeRoom(), 0))
		}
	}
}

func (l *limitListener) Accept() (net.Conn, error) {
	if err := l.place(); err != nil {
		return nil, err
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
		c := &countedConn{Conn: conn, listener: l, leave: leave}
		l.mu.Lock()
		c.headerless = l.headerless.PushBack(c)
		l.mu.Unlock()
		return c, nil
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
	once  sync.Once
	leave func() // ends the count of the address
	// listener is the listener that counts the connection.
	listener *limitListener
	// headerless is the place in the listener's list, until the first header has come.
	headerless *list.Element
	// began is when the first read began.
	began time.Time
	// reading is &began while a read waits.
	reading atomic.Pointer[time.Time]
}

func (c *countedConn) Read(b []byte) (int, error) {
	if c.began.IsZero() { // reads never overlap
		c.began = time.Now()
	}
	c.reading.Store(&c.began)
	defer c.reading.Store(nil)
	return c.Conn.Read(b)
}

func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.listener.mu.Lock()
		c.listener.hasHeader(c)
		c.listener.mu.Unlock()
		c.leave()
		<-c.listener.open
	})
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

package rig

import (
	"net"
	"sync"
	"time"
)

// Wire is a network connection between the service and its store. It can be slowed, lose data in
// one direction or both, or break.
type Wire struct {
	Addr string // address of the store for the service

	to       string
	listener net.Listener
	parts    sync.WaitGroup

	mu      sync.Mutex
	weather Weather
	changed chan struct{} // closed and replaced when the weather changes
	conns   map[*net.TCPConn]bool
	closed  bool
}

// Weather is the faults of a wire. The zero Weather has none.
type Weather struct {
	// Delay is added to every piece of an answer.
	Delay time.Duration
	// BytesPerSecond limits each connection and direction; 0: no limit.
	BytesPerSecond int
	// Mute drops answers, Deaf drops requests. The connections stay open, and dropped data never
	// arrives.
	Mute, Deaf bool
}

// NewWire starts a wire to a TCP address.
func NewWire(to string) (*Wire, error) { return NewWireAt("127.0.0.1", to) }

// NewWireAt starts a wire that listens at an IP address of this machine.
func NewWireAt(ip, to string) (*Wire, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0")) //nolint:noctx // it listens until it is closed
	if err != nil {
		return nil, err
	}
	w := &Wire{Addr: listener.Addr().String(), to: to, listener: listener, changed: make(chan struct{}), conns: map[*net.TCPConn]bool{}}
	w.parts.Go(w.accept)
	return w, nil
}

// Set changes the weather. A connection that has lost data never recovers: it is reset when the
// faults end.
func (w *Wire) Set(now Weather) {
	w.mu.Lock()
	was := w.weather
	w.weather = now
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
	if was.Mute && !now.Mute || was.Deaf && !now.Deaf {
		w.Reset()
	}
}

// Reset resets every open connection, at both ends.
func (w *Wire) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.SetLinger(0) // so that closing sends RST
		_ = c.Close()
	}
}

// Close closes the wire and all its connections.
func (w *Wire) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	err := w.listener.Close()
	w.Set(Weather{})
	w.Reset()
	w.parts.Wait()
	return err
}

func (w *Wire) accept() {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", w.to) //nolint:noctx // on loopback, where nothing is waited for
		if err != nil {
			_ = from.Close()
			continue
		}
		a, b := from.(*net.TCPConn), to.(*net.TCPConn)
		if !w.keep(a, b) {
			return
		}
		w.parts.Go(func() { w.carry(b, a, false) })
		w.parts.Go(func() { w.carry(a, b, true) })
	}
}

func (w *Wire) keep(pair ...*net.TCPConn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range pair {
		if w.closed {
			_ = c.Close()
			continue
		}
		w.conns[c] = true
	}
	return !w.closed
}

// carry copies one direction until it ends, and then closes both.
func (w *Wire) carry(to, from *net.TCPConn, answers bool) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, c := range []*net.TCPConn{to, from} {
			_ = c.Close()
			delete(w.conns, c)
		}
	}()
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 && w.pass(n, answers) {
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass delays a piece as the weather says, and reports whether it arrives.
func (w *Wire) pass(n int, answers bool) bool {
	w.mu.Lock()
	now, changed := w.weather, w.changed
	w.mu.Unlock()
	pause := time.Duration(0)
	if answers {
		pause = now.Delay
	}
	if now.BytesPerSecond > 0 {
		pause += time.Duration(n) * time.Second / time.Duration(now.BytesPerSecond)
	}
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-changed:
		}
	}
	return !(now.Mute && answers || now.Deaf && !answers)
}

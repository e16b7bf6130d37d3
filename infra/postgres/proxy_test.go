package postgres_test

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy is a TCP proxy between a store and its server that loses requests or replies on demand.
type proxy struct {
	t        testing.TB
	server   string
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	loss    loss
	spare   int // pieces that pass before the loss
	refuses bool
	conns   map[net.Conn]bool
}

// loss is the proxy's action on the next bytes of a client.
type loss int

const (
	nothing loss = iota
	request      // drop the bytes and cut the connection
	reply        // pass the bytes on, and cut the connection when the server answers
	silence      // pass nothing on from now on, in both directions, on all connections
)

// through starts a proxy and returns the URL that leads through it.
func through(t testing.TB, to string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(to)
	must(t, err)
	p := &proxy{t: t, server: u.Host, conns: map[net.Conn]bool{}}
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	u.Host = p.listener.Addr().String()
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p, u.String()
}

func (p *proxy) close() {
	p.listener.Close() //nolint:errcheck // ends accept
	p.cut()
	p.running.Wait()
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close() //nolint:errcheck // that is all we want
	}
}

// refuse closes all connections and refuses new ones, until it is called with false.
func (p *proxy) refuse(on bool) {
	p.mu.Lock()
	p.refuses = on
	p.mu.Unlock()
	if on {
		p.cut()
	}
}

// admit registers a client, unless the proxy refuses.
func (p *proxy) admit(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.refuses {
		p.conns[client], p.conns[server] = true, true
	}
	return !p.refuses
}

// lose sets the next loss. A request or reply is lost once.
func (p *proxy) lose(what loss) { p.loseAfter(0, what) }

// loseAfter lets a number of pieces from clients pass before the loss.
func (p *proxy) loseAfter(pieces int, what loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loss, p.spare = what, pieces
}

// lost reports whether the loss has happened.
func (p *proxy) lost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loss == nothing
}

// take returns the action for a client's next bytes.
func (p *proxy) take() loss {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spare > 0 {
		p.spare--
		return nothing
	}
	what := p.loss
	if what != silence {
		p.loss = nothing
	}
	return what
}

func (p *proxy) silent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loss == silence
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			p.t.Error(err)
			client.Close() //nolint:errcheck // of no use
			return
		}
		if !p.admit(client, server) {
			client.Close() //nolint:errcheck // that is the fault
			server.Close() //nolint:errcheck // as above
			continue
		}
		lost := make(chan struct{})
		p.running.Go(func() { p.forth(client, server, lost) })
		p.running.Go(func() { p.back(client, server, lost) })
	}
}

// forth copies bytes to the server.
func (p *proxy) forth(client, server net.Conn, lost chan struct{}) {
	defer server.Close() //nolint:errcheck // ends the other direction
	buffer := make([]byte, 1<<20)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		switch p.take() {
		case request:
			client.Close() //nolint:errcheck // that is the fault
			return
		case silence:
			continue
		case reply:
			close(lost)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// back copies bytes to the client.
func (p *proxy) back(client, server net.Conn, lost chan struct{}) {
	defer client.Close() //nolint:errcheck // ends the other direction
	buffer := make([]byte, 1<<20)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-lost:
			return // the server has answered, so it has executed the request
		default:
		}
		if p.silent() {
			continue
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

package redis

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy is a TCP proxy that loses replies together with their connections.
type proxy struct {
	server   string
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	each    int // one of this many replies is lost; 0 means none
	answers int
	lost    int
	conns   map[net.Conn]bool
}

func through(t *testing.T, to string) *proxy {
	t.Helper()
	u, err := url.Parse(to)
	must(t, err)
	p := &proxy{server: u.Host, conns: map[net.Conn]bool{}}
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p.running.Go(func() {
		for {
			conn, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		p.listener.Close() //nolint:errcheck // ends accept
		p.mu.Lock()
		for conn := range p.conns {
			conn.Close() //nolint:errcheck // that is all we want
		}
		p.mu.Unlock()
		p.running.Wait()
	})
	return p
}

func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() + "/0" }

func (p *proxy) loseEach(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.each, p.answers = n, 0
}

func (p *proxy) lostSoFar() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// loses reports whether the next reply is lost.
func (p *proxy) loses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers++
	if p.each == 0 || p.answers%p.each != 0 {
		return false
	}
	p.lost++
	return true
}

func (p *proxy) serve(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // it is over
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // it is over
	p.mu.Lock()
	p.conns[conn], p.conns[server] = true, true
	p.mu.Unlock()
	asking := make(chan struct{})
	go func() {
		defer close(asking)
		io.Copy(server, conn) //nolint:errcheck // its end is all there is to know
		server.Close()        //nolint:errcheck // so that reading ends
	}()
	answer := make([]byte, 4<<10)
	for {
		n, err := server.Read(answer)
		if err != nil || p.loses() {
			break
		}
		if _, err := conn.Write(answer[:n]); err != nil {
			break
		}
	}
	conn.Close() //nolint:errcheck // so that asking ends
	<-asking
}

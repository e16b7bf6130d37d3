// Package resttest has what the tests of package rest share with the tests of packages with routes. It
// imports no package of api but webguard, so that package rest can use it.
package resttest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/webguard"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Listen listens on loopback, on a free port.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// Serve serves on a listener until the test ends. It then waits until all connections are closed,
// which net/http itself does not.
func Serve(t testing.TB, server *http.Server, listener net.Listener) {
	t.Helper()
	var open sync.WaitGroup
	own := server.ConnState
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		own(conn, state)
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Done()
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		open.Wait()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
}

// PageRequest is a request as a browser sends it for a page.
type PageRequest struct {
	What, Text string
	Refusal    eventlog.Refusal // of a request without a key; empty if it is answered
}

// PageRequests lists requests of pages to a route of a listener whose Hosts are watchtower, and whose
// Origins are https://app.example.
func PageRequests(method, path string) (all []PageRequest) {
	for _, from := range []struct {
		what, headers string
		refusal       eventlog.Refusal
	}{
		{"of an address", "Host: 127.0.0.1:8420", ""},
		{"of localhost", "Host: localhost:8420", ""},
		{"of a name that is listed", "Host: watchtower:8420", ""},
		{"of a page that is listed", "Host: localhost\r\nOrigin: https://app.example\r\nSec-Fetch-Site: cross-site", ""},
		{"of a name that was rebound", "Host: evil.example:8420", webguard.ErrHost},
		{"of that name, with a proxy's header", "Host: evil.example:8420\r\nX-Forwarded-Host: localhost", webguard.ErrHost},
		{"of that name, of its own page", "Host: evil.example:8420\r\nOrigin: http://evil.example:8420\r\nSec-Fetch-Site: same-origin", webguard.ErrHost},
		{"of another page", "Host: localhost\r\nOrigin: http://evil.example", webguard.ErrOrigin},
		{"of a sandboxed page", "Host: localhost\r\nOrigin: null", webguard.ErrOrigin},
		{"of another page's image", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors", webguard.ErrOrigin},
		{"of a page at another port", "Host: localhost\r\nSec-Fetch-Site: same-site", webguard.ErrOrigin},
	} {
		text := fmt.Sprintf("%s %s HTTP/1.1\r\n%s\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", method, path, from.headers)
		all = append(all, PageRequest{method + " " + path + " " + from.what, text, from.refusal})
	}
	return all
}

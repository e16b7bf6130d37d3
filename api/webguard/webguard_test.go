package webguard_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/webguard"
)

// A page reaches a listener on loopback by an unspecified address, and by a loopback address in the
// form of IPv6, without Sec-Fetch-Site and, for an image, without Origin. No listener answers to
// them, whatever names it accepts.
func TestUnspecifiedHosts(t *testing.T) {
	for _, host := range []string{
		"0.0.0.0", "0.0.0.0:8420", "[::]", "[::]:8420", "[::%25lo]:8420", "[0:0:0:0:0:0:0:0]:8420", "[::ffff:0.0.0.0]:8420", "[::ffff:0:0]:8420",
		"[::ffff:127.0.0.1]:8420", "[::ffff:7f00:1]:8420",
	} {
		for _, g := range []webguard.Guard{guard, {Hosts: []string{"0.0.0.0", "::", "::ffff:7f00:1"}}, {AnyHost: true}} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Host = host
			if err := g.Check(r); !errors.Is(err, webguard.ErrHost) || !strings.Contains(err.Error(), "use 127.0.0.1, [::1] or localhost") {
				t.Errorf("Host %q: %v", host, err)
			}
		}
	}
}

// request parses a request from its bytes, like a server.
func request(t *testing.T, text string) *http.Request {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n") + "\r\n\r\n")))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return r
}

var guard = webguard.Guard{Hosts: []string{"watchtower", "Api.Example.com"}, Origins: []string{"https://app.example"}}

func TestHost(t *testing.T) {
	for host, allowed := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:8420": true, "10.1.2.3:8420": true,
		"[::1]": true, "[::1]:8420": true, "[fe80::1%25eth0]:8420": true, "[::ffff:10.1.2.3]:8420": true,
		"localhost": true, "localhost:8420": true, "LOCALHOST:8420": true, "localhost.": true, "localhost.:8420": true,
		"console.localhost:8420": true, "watchtower:8421": true, "WatchTower": true, "api.example.COM.:443": true,
		"localhost:": true,

		"": false, ":8420": false, ".": false, ".localhost": false, "localhost..": false,
		"evil.example": false, "evil.example:8420": false, "evil.example.": false, "localhost.evil.example:8420": false,
		"127.0.0.1.evil.example": false, "notlocalhost": false, "xlocalhost:8420": false, "sub.watchtower": false, "watchtower.evil.example": false,
		"127.1": false, "2130706433": false, "0x7f.0.0.1": false, "127.0.0.1.nip.io:8420": false,
		"[::1": false, "[::1]evil.example": false, "[::1]:x": false, "[127.0.0.1]": false, "[evil.example]": false, "::1": false,
		"localhost:8420:evil": false, "localhost:evil": false, "localhost:123456": false, "user@localhost": false, "evil.example@localhost": false,
		"localhost,evil.example": false, "evil.example,localhost": false, "localhost evil": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Host = host
		if err := guard.Check(r); (err == nil) != allowed || err != nil && !errors.Is(err, webguard.ErrHost) {
			t.Errorf("Host %q: %v", host, err)
		}
	}
}

// The name is taken from the place that RFC 9112 defines, and from no other.
func TestHostOnTheWire(t *testing.T) {
	for text, allowed := range map[string]bool{
		"GET / HTTP/1.1\nHost: localhost:8420":                                       true,
		"GET / HTTP/1.1\nHost: evil.example":                                         false,
		"GET / HTTP/1.0":                                                             false,
		"GET / HTTP/1.0\nHost: localhost":                                            true,
		"GET http://evil.example/ HTTP/1.1\nHost: localhost":                         false,
		"GET http://localhost/ HTTP/1.1\nHost: evil.example":                         true, // the target counts: RFC 9112, section 3.2.2
		"GET / HTTP/1.1\nHost: evil.example\nX-Forwarded-Host: localhost":            false,
		"GET / HTTP/1.1\nHost: evil.example\nForwarded: host=localhost":              false,
		"GET / HTTP/1.1\nHost: evil.example\nX-Original-Host: localhost":             false,
		"GET / HTTP/1.1\nHost: localhost\nX-Forwarded-Host: evil.example":            true,
		"CONNECT evil.example:443 HTTP/1.1\nHost: evil.example:443":                  false,
		"OPTIONS * HTTP/1.1\nHost: evil.example":                                     false,
		"POST / HTTP/1.1\nHost: evil.example\nX-HTTP-Method-Override: GET":           false,
		"POST / HTTP/1.1\nHost: evil.example\nContent-Type: application/json":        false,
		"POST / HTTP/1.1\nHost: evil.example\nOrigin: http://evil.example":           false,
		"POST / HTTP/1.1\nHost: evil.example\nSec-Fetch-Site: same-origin":           false,
		"GET / HTTP/1.1\nHost: evil.example:8420\nAuthorization: Bearer wt_invented": false,
	} {
		if err := guard.Check(request(t, text)); (err == nil) != allowed {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOrigin(t *testing.T) {
	const own = "Host: localhost:8420\n"
	for headers, allowed := range map[string]bool{
		own:                                   true,
		own + "Origin: http://localhost:8420": true,
		own + "Origin: https://app.example":   true,
		"Host: LocalHost:8420\nOrigin: http://localhost:8420":           true,
		"Host: localhost\nOrigin: http://localhost":                     true,
		"Host: localhost:80\nOrigin: http://localhost":                  true,
		"Host: [::1]:8420\nOrigin: http://[::1]:8420":                   true,
		"Host: [::1]:80\nOrigin: http://[::1]":                          true,
		own + "Sec-Fetch-Site: none":                                    true,
		own + "Sec-Fetch-Site: same-origin":                             true,
		own + "Origin: https://app.example\nSec-Fetch-Site: cross-site": true,
		own + "Referer: https://evil.example/":                          true, // a page may omit Referer: it proves nothing

		own + "Origin: http://evil.example":                                 false,
		own + "Origin: https://localhost:8420":                              false,
		own + "Origin: http://localhost:8421":                               false,
		own + "Origin: http://localhost":                                    false,
		own + "Origin: http://127.0.0.1:8420":                               false,
		own + "Origin: http://localhost:8420.evil.example":                  false,
		own + "Origin: https://app.example.evil":                            false,
		own + "Origin: http://app.example":                                  false,
		own + "Origin: HTTPS://APP.EXAMPLE":                                 false,
		own + "Origin: null":                                                false,
		own + "Origin: *":                                                   false,
		own + "Origin:":                                                     false,
		own + "Origin: https://app.example\nOrigin: http://evil.example":    false,
		own + "Origin: https://app.example\nOrigin: https://app.example":    false,
		own + "Origin: http://evil.example\nSec-Fetch-Site: same-origin":    false,
		own + "Sec-Fetch-Site: cross-site":                                  false,
		own + "Sec-Fetch-Site: same-site":                                   false,
		own + "Sec-Fetch-Site: invented":                                    false,
		own + "Sec-Fetch-Site: none\nSec-Fetch-Site: cross-site":            false,
		own + "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate":        false,
		own + "Origin: http://evil.example\nX-Forwarded-Host: evil.example": false,
		own + "Origin: https://localhost:8420\nX-Forwarded-Proto: https":    false,
	} {
		if err := guard.Check(request(t, "POST / HTTP/1.1\n"+strings.TrimSuffix(headers, "\n"))); (err == nil) != allowed || err != nil && !errors.Is(err, webguard.ErrOrigin) {
			t.Errorf("%q: %v", headers, err)
		}
	}
	secured := request(t, "GET / HTTP/1.1\nHost: signer.example\nOrigin: https://signer.example")
	secured.TLS = new(tls.ConnectionState)
	if err := guard.Check(secured); !errors.Is(err, webguard.ErrHost) {
		t.Errorf("with TLS, of a name that is not known: %v", err)
	}
	if err := (webguard.Guard{AnyHost: true}).Check(secured); err != nil {
		t.Errorf("with TLS, whose certificate proves the name: %v", err)
	}
	secured.Header.Set("Origin", "http://signer.example")
	if err := (webguard.Guard{AnyHost: true}).Check(secured); !errors.Is(err, webguard.ErrOrigin) {
		t.Errorf("with TLS, of a page without: %v", err)
	}
	if err := (webguard.Guard{Origins: []string{"*"}}).Check(request(t, "GET / HTTP/1.1\n"+own+"Origin: http://evil.example")); err == nil {
		t.Error("* lets every page in")
	}
}

func TestPreflighted(t *testing.T) {
	for headers, want := range map[string]bool{
		"POST\nContent-Type: application/json":                true,
		"POST\nContent-Type: application/json; charset=utf-8": true,
		"POST\nContent-Type: APPLICATION/JSON":                true,
		"POST\nX-Api-Key: wt_x":                               true,
		"POST\nIdempotency-Key: a":                            true,
		"POST\nAuthorization: Bearer wt_x":                    true,
		"POST\nAuthorization: signature 0x00":                 true,
		"DELETE":                                              true,
		"PUT\nContent-Type: text/plain":                       true,
		"PATCH":                                               true,
		"POST":                                                false,
		"GET":                                                 false,
		"POST\nContent-Type: text/plain":                      false,
		"POST\nContent-Type: text/plain; application/json":    false,
		"POST\nContent-Type: text/plain;charset=application/json":            false,
		"POST\nContent-Type: application/x-www-form-urlencoded":              false,
		"POST\nContent-Type: multipart/form-data; boundary=application/json": false,
		"POST\nContent-Type: application/json, text/plain":                   false,
		"POST\nContent-Type: application/json\nContent-Type: text/plain":     false,
		"POST\nAccept: application/json":                                     false,
		"POST\nAuthorization: Basic dTpw":                                    false,
		"POST\nAuthorization: Negotiate x":                                   false,
		"POST\nX-HTTP-Method-Override: DELETE":                               false,
		"POST\nCookie: a=b":                                                  false,
	} {
		method, rest, _ := strings.Cut(headers, "\n")
		if got := webguard.Preflighted(request(t, strings.TrimSuffix(method+" / HTTP/1.1\nHost: localhost\n"+rest, "\n"))); got != want {
			t.Errorf("%q: %v", headers, got)
		}
	}
}

// HTTP/2 names the host in :authority.
func TestHTTP2(t *testing.T) {
	reached := 0
	s := httptest.NewUnstartedServer(guard.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if reached++; r.ProtoMajor != 2 {
			t.Errorf("it came by %s", r.Proto)
		}
	})))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for _, tt := range []struct {
		method, host, kind string
		status             int
	}{
		{http.MethodGet, "", "", 200},
		{http.MethodGet, "watchtower:8421", "", 200},
		{http.MethodGet, "evil.example", "", 403},
		{http.MethodPost, "", "application/json", 200},
		{http.MethodPost, "", "text/plain", 415},
		{http.MethodPost, "evil.example", "application/json", 403},
		{http.MethodDelete, "", "", 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = tt.host
		if tt.kind != "" {
			r.Header.Set("Content-Type", tt.kind)
		}
		res, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != tt.status {
			t.Errorf("%+v: %d", tt, res.StatusCode)
		}
	}
	if reached != 4 {
		t.Errorf("%d requests came through", reached)
	}
}

// Refusals name the settings that would let a request in, if there are such settings.
func TestRefusalsNameTheListenersSettings(t *testing.T) {
	host := request(t, "GET / HTTP/1.1\nHost: evil.example")
	origin := request(t, "GET / HTTP/1.1\nHost: 127.0.0.1\nOrigin: https://evil.example")
	for _, c := range []struct {
		guard        webguard.Guard
		host, origin string
	}{
		{webguard.Guard{}, "host-not-allowed: the request's Host is neither an IP address nor localhost", "origin-not-allowed: the request's Origin is not the service's own"},
		{
			webguard.Guard{HostsSetting: "some.hosts", OriginsSetting: "some.origins"},
			"host-not-allowed: the request's Host is neither an IP address nor localhost nor one of some.hosts",
			"origin-not-allowed: the request's Origin is neither the service's own nor one of some.origins",
		},
	} {
		for r, want := range map[*http.Request]string{host: c.host, origin: c.origin} {
			if err := c.guard.Check(r); err == nil || err.Error() != want {
				t.Errorf("refused with %v, not %q", err, want)
			}
		}
	}
}

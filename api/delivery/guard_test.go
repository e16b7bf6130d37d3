package delivery

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/webguard"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Headers that a browser sets, and the answers to such requests without a key.
var fromPages = []struct { //nolint:gochecknoglobals // a table of two tests
	what, headers string
	refusal       eventlog.Refusal // empty if it is answered
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
}

func guarding(c *Config) {
	c.Hosts, c.Origins = []string{"watchtower"}, []string{"https://app.example"}
}

// requestsOfPages sends a request to each route with each of these headers.
func requestsOfPages(t *testing.T, s *stack, routes []route, refused bool) {
	t.Helper()
	path := strings.NewReplacer("{hash}", "0x12", "{sender}", "0x12", "{groupId}", "0x12", "{chainId}", "7", "{id}", "0", "{profile}", "x")
	for _, r := range append(routes, route{method: http.MethodGet, path: "/nothing"}) {
		for _, tt := range fromPages {
			text := fmt.Sprintf("%s %s HTTP/1.1\r\n%s\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
				r.method, path.Replace(r.path), tt.headers)
			answers, _ := s.raw(text, patience)
			switch {
			case len(answers) != 1:
				t.Errorf("%s %s %s: answers %v", r.method, r.path, tt.what, answers)
			case refused && tt.refusal != "":
				wantProblem(t, r.method+" "+r.path+" "+tt.what, answers[0], http.StatusForbidden, tt.refusal)
			default:
				if text := string(answers[0].body); strings.Contains(text, "/problems/host") || strings.Contains(text, "/problems/origin") {
					t.Errorf("%s %s %s: %s", r.method, r.path, tt.what, text)
				}
			}
		}
	}
}

// Without a key no route of the public listener answers a page's request. Once keys exist the
// key counts, and a proxy in front may use any host name.
func TestPagesArePublicNowhere(t *testing.T) {
	keys := newRing(t)
	bounded := func(c *Config) { c.Limits.StreamSilence = 1 }
	s := newStack(t, keys.config, guarding, bounded)
	routes := newAPI(s.config).routes()
	for i, r := range routes {
		if r.path == "/v1/events" { // the stream would not end
			routes[i].path = "/v1/events?after=x"
		}
	}
	requestsOfPages(t, s, routes, true)
	keys.scoped(access.Read)
	requestsOfPages(t, s, routes, false)
	open := newStack(t, keys.config, guarding, bounded, func(c *Config) { c.Access.Open = true })
	requestsOfPages(t, open, routes, true)
}

// The internal listener refuses pages whether keys exist or not, as /metrics needs none. Only
// if other machines can reach it and keys are in use may a monitor use any host name.
func TestPagesOnTheInternalListener(t *testing.T) {
	keys := newRing(t)
	routes := []route{{method: http.MethodGet, path: "/metrics"}}
	for _, r := range newAPI(Config{}).adminRoutes() {
		if r.path != "/admin/drain" && r.method != http.MethodPut {
			routes = append(routes, r)
		}
	}
	for _, tt := range []struct{ exposed, open, refused bool }{
		{false, false, true}, {false, true, true}, {true, false, true}, {true, true, true}, // before the first key
		{false, false, true}, {false, true, true}, {true, false, false}, {true, true, true},
	} {
		s, _, _ := operated(t, guarding, keys.config, func(c *Config) { c.Access.Open, c.Admin.Exposed = tt.open, tt.exposed })
		requestsOfPages(t, s, routes, tt.refused)
		if tt.exposed && tt.open && !keys.state.Load().Closed() {
			keys.scoped(access.Read)
		}
	}
}

// A POST that a page could send without a CORS preflight has no effect, whether its endpoint
// reads the body or not.
func TestPostsThatNeedNoPreflight(t *testing.T) {
	s, _, drained := operated(t)
	for _, headers := range []string{
		"", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n", "Content-Type: multipart/form-data; boundary=x\r\n",
		"Content-Type: text/plain\r\nAuthorization: Basic d3Q6d3Q=\r\n", "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
		"X-HTTP-Method-Override: PUT\r\n", "Accept: application/json\r\n",
	} {
		answers, _ := s.raw("POST /admin/drain HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+headers+"Content-Length: 2\r\n\r\n{}", patience)
		if len(answers) != 1 {
			t.Fatalf("%q: %v", headers, answers)
		}
		wantProblem(t, headers, answers[0], http.StatusUnsupportedMediaType, ErrUnsupportedMediaType)
	}
	if *drained {
		t.Error("drained")
	}
	answers, _ := s.raw("POST /admin/drain HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n", patience)
	if len(answers) != 1 || answers[0].status != http.StatusOK || !*drained {
		t.Errorf("a client's: %v", answers)
	}
	// No header changes the method.
	public := newStack(t)
	for _, override := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		res, err := public.send(http.MethodPost, "/v1/transactions/0x12?_method=DELETE", []byte("{}"), override, http.MethodDelete)
		if err != nil {
			t.Fatal(err)
		}
		wantProblem(t, override, res, http.StatusMethodNotAllowed, ErrMethodNotAllowed)
	}
}

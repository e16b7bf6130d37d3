package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/domain/access"
)

func guarding(c *Config) {
	c.Hosts, c.Origins = []string{"watchtower"}, []string{"https://app.example"}
}

// requestsOfPages sends a request of each page to each route.
func requestsOfPages(t *testing.T, s *stack, routes []route, refused bool) {
	t.Helper()
	path := strings.NewReplacer("{hash}", "0x12", "{sender}", "0x12", "{groupId}", "0x12", "{chainId}", "7", "{id}", "0", "{profile}", "x")
	for _, r := range append(routes, route{method: http.MethodGet, path: "/nothing"}) {
		for _, tt := range resttest.PageRequests(r.method, path.Replace(r.path)) {
			answers, _ := s.raw(tt.Text, patience)
			switch {
			case len(answers) != 1:
				t.Errorf("%s: answers %v", tt.What, answers)
			case refused && tt.Refusal != "":
				wantProblem(t, tt.What, answers[0], http.StatusForbidden, tt.Refusal)
			default:
				if text := string(answers[0].body); strings.Contains(text, "/problems/host") || strings.Contains(text, "/problems/origin") {
					t.Errorf("%s: %s", tt.What, text)
				}
			}
		}
	}
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
		if tt.exposed && tt.open && !keys.Keys().Closed() {
			keys.Scoped(access.Read)
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
		res, err := public.send(http.MethodPost, "/v1/things/0x12?_method=DELETE", []byte("{}"), override, http.MethodDelete)
		if err != nil {
			t.Fatal(err)
		}
		wantProblem(t, override, res, http.StatusMethodNotAllowed, ErrMethodNotAllowed)
	}
}

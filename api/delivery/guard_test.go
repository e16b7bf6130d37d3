package delivery

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/domain/access"
)

func guarding(c *Config) {
	c.Hosts, c.Origins = []string{"watchtower"}, []string{"https://app.example"}
}

// requestsOfPages sends a request of each page to each route.
func requestsOfPages(t *testing.T, s *stack, routes []rest.Route, refused bool) {
	t.Helper()
	path := strings.NewReplacer("{hash}", "0x12", "{sender}", "0x12", "{groupId}", "0x12", "{chainId}", "7", "{id}", "0", "{profile}", "x")
	for _, r := range append(routes, rest.Route{Method: http.MethodGet, Path: "/nothing"}) {
		for _, tt := range resttest.PageRequests(r.Method, path.Replace(r.Path)) {
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

// Without a key no route of the public listener answers a page's request. Once keys exist the
// key counts, and a proxy in front may use any host name.
func TestPagesArePublicNowhere(t *testing.T) {
	keys := newRing(t)
	bounded := func(c *Config) { c.Limits.StreamSilence = 1 }
	s := newStack(t, keys.config, guarding, bounded)
	routes := allRoutes(s.config)
	for i, r := range routes {
		if r.Path == "/v1/events" { // the stream would not end
			routes[i].Path = "/v1/events?after=x"
		}
	}
	requestsOfPages(t, s, routes, true)
	keys.Scoped(access.Read)
	requestsOfPages(t, s, routes, false)
	open := newStack(t, keys.config, guarding, bounded, func(c *Config) { c.Access.Open = true })
	requestsOfPages(t, open, routes, true)
}

package delivery

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rest/resttest"
	"github.com/tempo-watchtower/watchtower/domain/access"
)

// ring is a keyring that a test controls.
type ring struct{ *resttest.Ring }

func newRing(t testing.TB) ring { return ring{resttest.NewRing(t, testTime)} }

func (r ring) config(c *Config) { c.Access.Keys = r.Keys }

// without lists every scope whose key does not open the given scope.
func without(scope access.Scope) (others []access.Scope) {
	for _, s := range access.Scopes() {
		if !(access.Key{Scopes: []access.Scope{s}}).Opens(scope) {
			others = append(others, s)
		}
	}
	return others
}

var variable = regexp.MustCompile(`\{[^}]*\}`)

// status sends a request and reads only the headers, as a stream's answer never ends.
func (s *stack) status(method, target string, header ...string) (status int, challenge string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+target, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	res.Body.Close() //nolint:errcheck,gosec // only the headers matter
	return res.StatusCode, res.Header.Get("WWW-Authenticate")
}

// Every route requires the scope that the contract names, and no other.
func TestEveryRouteAsksForItsScope(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config)
	doc := contract(t)
	perfect := keys.Scoped(access.Scopes()...)
	for _, route := range allRoutes(s.config) {
		operation := at(t, doc, "paths", route.Path, strings.ToLower(route.Method))
		name := route.Method + " " + route.Path
		ask := func(header ...string) int {
			t.Helper()
			status, challenge := s.status(route.Method, variable.ReplaceAllString(route.Path, "x"), header...)
			if (status == 401) != (challenge != "") {
				t.Errorf("%s: %d with the challenge %q", name, status, challenge)
			}
			return status
		}
		if isOpen(route) {
			if free, ok := operation["security"].([]any); !ok || len(free) != 0 {
				t.Errorf("%s: the contract asks for a key", name)
			}
			if status := ask(); status == 401 || status == 403 {
				t.Errorf("%s: %d without a key", name, status)
			}
			continue
		}
		if operation["x-scope"] != string(route.Scope) {
			t.Errorf("%s: the contract says scope %v, the route %s", name, operation["x-scope"], route.Scope)
		}
		if status := ask(); status != 401 {
			t.Errorf("%s: %d without a key", name, status)
		}
		if status := ask("X-API-Key", keys.Scoped(without(route.Scope)...)); status != 403 {
			t.Errorf("%s: %d with every scope but %s", name, status, route.Scope)
		}
		for _, status := range []int{ask("X-API-Key", perfect), ask("Authorization", "Bearer "+keys.Scoped(route.Scope))} {
			if status == 401 || status == 403 {
				t.Errorf("%s: %d with the scope", name, status)
			}
		}
	}
}

// Headers that may carry a key, and values that are no key.
func TestKeysInHeaders(t *testing.T) {
	keys := newRing(t)
	open := newStack(t, keys.config)
	if res := open.get("/v1/transactions"); res.status != 200 {
		t.Errorf("before the first key: %v", res)
	}
	good, other := keys.Scoped(access.Read), keys.Scoped(access.Read)
	flipped := good[:len(good)-1] + string('0'+('1'-good[len(good)-1])&1)
	if flipped == good {
		t.Fatal("nothing was flipped")
	}
	expired, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, ExpiresAt: uint64(testTime.Unix()) + 1})
	open.elapse(time.Second)
	revoked, id := keys.Create(access.Key{Scopes: []access.Scope{access.Read}})
	keys.Handle(access.Revoke{ID: id, At: testTime})

	anyway := newStack(t, keys.config, func(c *Config) { c.Access.Open = true })
	anyway.elapse(time.Second)
	for _, tt := range []struct {
		name         string
		header       []string
		status, free int // free: the status if no key is needed
	}{
		{"none", nil, 401, 200},
		{"bearer", []string{"Authorization", "Bearer " + good}, 200, 200},
		{"bearer, in lower case", []string{"Authorization", "bearer  " + good}, 200, 200},
		{"own header", []string{"X-API-Key", good}, 200, 200},
		{"own header beside a signature", []string{"X-API-Key", good, "Authorization", "Signature 0x00"}, 200, 200},
		{"the same twice", []string{"X-API-Key", good, "Authorization", "Bearer " + good}, 200, 200},
		{"two keys", []string{"X-API-Key", good, "Authorization", "Bearer " + other}, 401, 401},
		{"wrong secret", []string{"X-API-Key", flipped}, 401, 401},
		{"another's secret", []string{"X-API-Key", good[:20] + other[20:]}, 401, 401},
		{"cut", []string{"X-API-Key", good[:len(good)-2]}, 401, 401},
		{"longer", []string{"X-API-Key", good + "00"}, 401, 401},
		{"not hex", []string{"X-API-Key", good[:len(good)-1] + "x"}, 401, 401},
		{"empty", []string{"X-API-Key", ""}, 401, 401},
		{"expired", []string{"X-API-Key", expired}, 401, 401},
		{"revoked", []string{"X-API-Key", revoked}, 401, 401},
		{"scheme missing", []string{"Authorization", good}, 401, 200},
		{"another service's", []string{"Authorization", "Bearer eyJhbGciOiJub25lIn0.e30."}, 401, 200},
		{"basic", []string{"Authorization", "Basic d3Q6d3Q="}, 401, 200},
	} {
		for s, want := range map[*stack]int{open: tt.status, anyway: tt.free} {
			if res := s.do(http.MethodGet, "/v1/transactions", nil, tt.header...); res.status != want {
				t.Errorf("%s, open %v: %v, want %d", tt.name, s == anyway, res, want)
			} else if want == 401 {
				wantProblem(t, tt.name, res, 401, rest.ErrUnauthorized)
			}
		}
	}
	// Two headers of one name, which a net/http client would not send.
	for _, header := range []string{"X-API-Key: %s\r\nX-API-Key: " + other, "Authorization: Bearer %s\r\nAuthorization: Bearer " + other} {
		answers, _ := open.raw("GET /v1/transactions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+fmt.Sprintf(header, good)+"\r\n\r\n", patience)
		if len(answers) != 1 || answers[0].status != 401 {
			t.Errorf("two headers: %v", answers)
		}
	}
	// After the last key is revoked, requests still need a key.
	for id := range keys.Keys().Keys {
		keys.Handle(access.Revoke{ID: id, At: testTime})
	}
	wantProblem(t, "after the last key", open.get("/v1/transactions"), 401, rest.ErrUnauthorized)
}

// Each key has its own bucket, with the key's rate or else the configured one. Requests with an
// invalid key are charged to the address.
func TestRateLimitPerKey(t *testing.T) {
	keys := newRing(t)
	s := newStack(t, keys.config, func(c *Config) {
		c.Rates.Key, c.Rates.Address = rest.Rate{PerSecond: 1, Burst: 2}, rest.Rate{PerSecond: 1, Burst: 3}
	})
	standard := keys.Scoped(access.Read)
	special, _ := keys.Create(access.Key{Scopes: []access.Scope{access.Read}, Rate: &access.Rate{PerSecond: 10, Burst: 20}})
	ask := func(token string) response {
		t.Helper()
		return s.do(http.MethodGet, "/v1/transactions", nil, "X-API-Key", token)
	}
	for i, want := range []int{200, 200, 429} {
		if res := ask(standard); res.status != want || !strings.HasPrefix(res.header.Get("RateLimit-Policy"), `"key";q=2;`) {
			t.Errorf("request %d: %v, %s", i, res, res.header.Get("RateLimit-Policy"))
		}
	}
	if res := ask(special); res.status != 200 || res.header.Get("RateLimit") != `"key";r=19;t=1` {
		t.Errorf("the other key: %v, %s", res, res.header.Get("RateLimit"))
	}
	for i, want := range []int{401, 401, 401, 429} {
		if res := ask("wt_guess"); res.status != want || !strings.HasPrefix(res.header.Get("RateLimit-Policy"), `"address";q=3;`) {
			t.Errorf("guess %d: %v", i, res)
		}
	}
	if res := ask(special); res.status != 200 {
		t.Errorf("a good key from where there were guesses: %v", res)
	}
}

package rest

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/api/webguard"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// operated serves the internal listener of a stack, with its keys stored in the log.
func operated(t testing.TB, change ...func(*Config)) (*stack, *slog.LevelVar, *bool) {
	t.Helper()
	s := newStack(t)
	handler := commands.AccessKeys{Store: s.db.Log(), Codec: access.Codec(), Random: rand.Reader}
	level, drained := new(slog.LevelVar), new(bool)
	config := s.config
	config.Admin = Admin{
		Keys: commands.Keys{AccessKeys: handler, Now: s.now}, Level: level, Drain: func() { *drained = true },
	}
	config.Access.Open = true // applies to the API, not to this listener
	config.Access.Keys = func() access.State {
		r, err := handler.Load(t.Context(), access.Stream)
		if err != nil {
			t.Error(err)
		}
		return r.State
	}
	for _, c := range change {
		c(&config)
	}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("figures")) })
	s.addr = serve(t, Internal(config, metrics), config.Limits)
	return s, level, drained
}

// operate is do for routes that the contract does not have.
func (s *stack) operate(method, target, body string, header ...string) response {
	s.t.Helper()
	res, err := s.send(method, target, []byte(body), append([]string{"Content-Type", "application/json"}, header...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

const wish = `{"name":"ops","scopes":["admin"],"senders":[],"ratePerSecond":0,"rateBurst":0,"expiresAt":0}`

func TestOperatorsKeys(t *testing.T) {
	s, level, drained := operated(t)
	res := s.operate(http.MethodPost, "/admin/keys", wish) // before the first key, from this machine
	var made struct {
		ID    access.KeyID
		Token string
	}
	unmarshal(t, res.body, &made)
	if res.status != 201 || !access.IsToken(made.Token) {
		t.Fatalf("create: %v", res)
	}
	for _, r := range newAPI(s.config).adminRoutes() {
		target := strings.NewReplacer("{id}", made.ID.String(), "{profile}", "heap").Replace(r.path)
		wantProblem(t, r.method+" "+r.path, s.operate(r.method, target, "{}"), 401, ErrUnauthorized)
		if reads := r.method == http.MethodGet && r.path != "/debug/pprof/{profile}"; r.scope != access.Admin && (!reads || r.scope != access.Audit) {
			t.Errorf("%s %s asks for %s", r.method, r.path, r.scope)
		}
	}
	if res := s.operate(http.MethodGet, "/metrics", ""); res.status != 200 || string(res.body) != "figures" {
		t.Errorf("metrics: %v", res)
	}
	own := func(method, target, body string, header ...string) response {
		return s.operate(method, target, body, append(header, "X-API-Key", made.Token)...)
	}
	reader := own(http.MethodPost, "/admin/keys", strings.Replace(wish, "admin", "read", 1))
	var other struct{ Token string }
	unmarshal(t, reader.body, &other)
	wantProblem(t, "another scope", s.operate(http.MethodGet, "/admin/keys", "", "X-API-Key", other.Token), 403, ErrForbidden)

	list := own(http.MethodGet, "/admin/keys", "")
	if list.status != 200 || !bytes.Contains(list.body, []byte(made.ID.String())) || bytes.Contains(list.body, []byte("wt_")) {
		t.Errorf("list: %v", list)
	}
	for name, tt := range map[string]struct {
		method, target, body string
		status               int
		code                 eventlog.Refusal
	}{
		"unknown key":     {"DELETE", "/admin/keys/0000000000000000", "", 404, access.ErrUnknownKey},
		"no key":          {"DELETE", "/admin/keys/x", "", 404, access.ErrUnknownKey},
		"no such scope":   {"POST", "/admin/keys", strings.Replace(wish, "admin", "all", 1), 422, access.ErrInvalidKey},
		"no such sender":  {"POST", "/admin/keys", strings.Replace(wish, `"senders":[]`, `"senders":["0x1"]`, 1), 422, access.ErrInvalidKey},
		"half a rate":     {"POST", "/admin/keys", strings.Replace(wish, `"rateBurst":0`, `"rateBurst":5`, 1), 422, access.ErrInvalidKey},
		"endless rate":    {"POST", "/admin/keys", strings.Replace(wish, `"rateBurst":0`, `"rateBurst":99999999999`, 1), 422, access.ErrInvalidKey},
		"a member less":   {"POST", "/admin/keys", strings.Replace(wish, `,"expiresAt":0`, "", 1), 400, ErrInvalidRequest},
		"no such level":   {"PUT", "/admin/log-level", `{"level":"loud"}`, 400, ErrInvalidRequest},
		"no such route":   {"GET", "/admin", "", 404, ErrNotFound},
		"no profiles":     {"GET", "/debug/pprof/heap", "", 404, ErrNotFound},
		"only GET or PUT": {"POST", "/admin/log-level", `{}`, 405, ErrMethodNotAllowed},
	} {
		wantProblem(t, name, own(tt.method, tt.target, tt.body), tt.status, tt.code)
	}
	if res := own(http.MethodPut, "/admin/log-level", `{"level":"debug"}`); res.status != 200 || level.Level() != slog.LevelDebug {
		t.Errorf("level: %v, %v", res, level)
	}
	// Headers of a page in an operator's browser.
	for _, mark := range []struct {
		name, value string
		code        eventlog.Refusal
	}{
		{"Origin", "http://" + s.addr, ErrForbidden}, {"Sec-Fetch-Site", "same-origin", ErrForbidden},
		{"Origin", "http://127.0.0.1", webguard.ErrOrigin}, {"Sec-Fetch-Site", "cross-site", webguard.ErrOrigin},
	} {
		wantProblem(t, mark.value, own(http.MethodPost, "/admin/drain", "", mark.name, mark.value), 403, mark.code)
	}
	if *drained {
		t.Error("drained by a page")
	}
	if res := own(http.MethodPost, "/admin/drain", ""); res.status != 200 || !*drained {
		t.Errorf("drain: %v", res)
	}
	if res := own(http.MethodDelete, "/admin/keys/"+made.ID.String(), ""); res.status != 204 {
		t.Errorf("revoke: %v", res)
	}
	wantProblem(t, "revoked", own(http.MethodGet, "/admin/keys", ""), 401, ErrUnauthorized)

	secret, err := hex.DecodeString(made.Token[len(made.Token)-64:])
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.recorded() {
		if bytes.Contains(e.Data, secret) || bytes.Contains(e.Data, []byte(hex.EncodeToString(secret))) {
			t.Error("a secret is in the log")
		}
	}
}

// If other machines can reach the listener, every route needs a key, even before the first key
// exists.
func TestExposedOperatorsRoutes(t *testing.T) {
	s, _, _ := operated(t, func(c *Config) { c.Admin.Exposed = true })
	wantProblem(t, "create", s.operate(http.MethodPost, "/admin/keys", wish), 401, ErrUnauthorized)
	if res := s.operate(http.MethodGet, "/metrics", ""); res.status != 200 {
		t.Errorf("metrics: %v", res)
	}
}

func TestProfiles(t *testing.T) {
	s, _, _ := operated(t, func(c *Config) { c.Admin.Profiles = true })
	for _, target := range []string{"/debug/pprof/heap", "/debug/pprof/goroutine?debug=1", "/debug/pprof/profile?seconds=1"} {
		if res := s.operate(http.MethodGet, target, ""); res.status != 200 || len(res.body) == 0 {
			t.Errorf("%s: %d with %d bytes", target, res.status, len(res.body))
		}
	}
	wantProblem(t, "no such profile", s.operate(http.MethodGet, "/debug/pprof/cmdline", ""), 404, ErrNotFound)
}

// The API's listener serves no operator routes.
func TestOperatorsRoutesAreInternal(t *testing.T) {
	s := newStack(t, func(c *Config) { c.Admin.Level, c.Admin.Profiles = new(slog.LevelVar), true })
	for _, target := range []string{"/metrics", "/admin/keys", "/admin/log-level", "/debug/pprof/heap"} {
		wantProblem(t, target, s.ask(target), 404, ErrNotFound)
	}
}

package rest

import (
	"log/slog"
	"net/http"
	"net/url"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Admin holds the dependencies of the operator routes of the internal listener.
type Admin struct {
	Keys  commands.Keys
	Level *slog.LevelVar
	// Drain makes the process report that it is not ready; it keeps serving requests.
	Drain func()
	// Profiles enables the CPU and memory profile routes.
	Profiles bool
	// Exposed means that other machines can reach the listener. A key is then required even
	// before the first key exists.
	Exposed bool
	// Routes are operator routes that another package adds. Kinds are the problems that these
	// routes return: see [NewFront].
	Routes []Route
	Kinds  []Kind
}

func (a *api) adminRoutes() []route {
	routes := []route{
		{http.MethodGet, "/admin/keys", access.Audit, nobody, a.listKeys},
		{http.MethodPost, "/admin/keys", access.Admin, nobody, a.createKey},
		{http.MethodDelete, "/admin/keys/{id}", access.Admin, nobody, a.revokeKey},
		{http.MethodGet, "/admin/log-level", access.Audit, nobody, a.showLevel},
		{http.MethodPut, "/admin/log-level", access.Admin, nobody, a.setLevel},
		{http.MethodPost, "/admin/drain", access.Admin, nobody, a.drain},
	}
	if a.Admin.Profiles {
		routes = append(routes, route{http.MethodGet, "/debug/pprof/{profile}", access.Admin, nobody, a.profile})
	}
	for _, r := range a.Admin.Routes {
		routes = append(routes, a.route(r))
	}
	for i := range routes {
		routes[i].endpoint = withoutBrowsers(routes[i].endpoint)
	}
	return routes
}

// withoutBrowsers refuses requests from all web pages, including the origins in api.origins,
// even when keys are in use: the operator routes are for programs.
func withoutBrowsers(e endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		site := r.Header.Get("Sec-Fetch-Site")
		if r.Header["Origin"] != nil || site != "" && site != "none" {
			return ErrForbidden.Because("the operators' routes refuse requests from web pages, also of origins in api.origins")
		}
		return e(w, r)
	}
}

// keyShown is an API key as the API returns it, without its secret.
type keyShown struct {
	ID        access.KeyID    `json:"id"`
	Name      string          `json:"name"`
	Client    string          `json:"client"`
	Scopes    []access.Scope  `json:"scopes"`
	Senders   []chain.Address `json:"senders,omitempty"`
	Signers   []chain.Address `json:"signers,omitempty"`
	Pools     []string        `json:"pools,omitempty"`
	Rate      *access.Rate    `json:"rate,omitempty"`
	ExpiresAt uint64          `json:"expiresAt,omitempty"`
	CreatedAt int64           `json:"createdAt,omitempty"`
	RevokedAt int64           `json:"revokedAt,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Token     string          `json:"token,omitempty"` // set only in the response that creates the key
}

func keyShownOf(k access.Key) keyShown {
	return keyShown{ID: k.ID, Name: k.Name, Client: k.Owner(), Scopes: k.Scopes, Senders: k.Senders, Signers: k.Signers, Pools: k.Pools, Rate: k.Rate, ExpiresAt: k.ExpiresAt}
}

// listKeys answers GET /admin/keys, oldest key first.
func (a *api) listKeys(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := a.work(r)
	defer cancel()
	entries, err := a.Admin.Keys.List(ctx)
	if err != nil {
		return err
	}
	shown := make([]keyShown, len(entries))
	for i, e := range entries {
		shown[i] = keyShownOf(e.Key)
		shown[i].CreatedAt, shown[i].Reason = e.CreatedAt.Unix(), e.Reason
		if !e.RevokedAt.IsZero() {
			shown[i].RevokedAt = e.RevokedAt.Unix()
		}
	}
	return reply(w, http.StatusOK, map[string]any{"keys": shown})
}

// createKey answers POST /admin/keys. Every member but client, signers and pools is required. An
// empty list of senders allows every sender; 0 for the rate or the expiry means none.
func (a *api) createKey(w http.ResponseWriter, r *http.Request) error {
	body, err := a.readBody(w, r)
	if err != nil {
		return err
	}
	key, err := readKey(body)
	if err != nil {
		return err
	}
	ctx, cancel := a.work(r)
	defer cancel()
	token, made, err := a.Admin.Keys.Create(ctx, key, exchangeOf(r).meta())
	if err != nil {
		return err
	}
	shown := keyShownOf(made)
	shown.Token = token
	return reply(w, http.StatusCreated, shown)
}

func readKey(body []byte) (key access.Key, err error) {
	r := reader{data: body}
	var rate access.Rate
	number := func(into *int) func() error {
		return func() error {
			n, err := r.uint64()
			if err == nil && n > access.BurstMax {
				return access.ErrInvalidKey.Because("a rate or burst is at most %d", access.BurstMax)
			}
			*into = int(n)
			return err
		}
	}
	members := []member{
		{"client", func() error { text, err := r.string(); key.Client = string(text); return err }},
		{"name", func() error { text, err := r.string(); key.Name = string(text); return err }},
		{"scopes", func() error {
			return r.list(func(int) error {
				text, err := r.string()
				key.Scopes = append(key.Scopes, access.Scope(text))
				return err
			})
		}},
		{"senders", func() error { return r.addresses("sender", &key.Senders) }},
		{"signers", func() error { return r.addresses("signer", &key.Signers) }},
		{"pools", func() error {
			return r.list(func(int) error {
				text, err := r.string()
				key.Pools = append(key.Pools, string(text))
				return err
			})
		}},
		{"ratePerSecond", number(&rate.PerSecond)},
		{"rateBurst", number(&rate.Burst)},
		{"expiresAt", func() (err error) { key.ExpiresAt, err = r.uint64(); return err }},
	}
	needed := make([]bool, len(members))
	for i, m := range members {
		// Operators' programs written for older releases do not send these.
		needed[i] = m.name != "client" && m.name != "signers" && m.name != "pools"
	}
	err = r.whole(func() error { return r.members(members, needed) })
	if rate != (access.Rate{}) {
		key.Rate = &rate
	}
	return key, err
}

// addresses reads a list of addresses of a key.
func (r *reader) addresses(what string, into *[]chain.Address) error {
	return r.list(func(int) error {
		text, err := r.string()
		if err != nil {
			return err
		}
		a, err := chain.ParseAddress(string(text))
		if err != nil {
			return access.ErrInvalidKey.Because("%s: %v", what, err)
		}
		*into = append(*into, a)
		return nil
	})
}

// revokeKey answers DELETE /admin/keys/{id}.
func (a *api) revokeKey(w http.ResponseWriter, r *http.Request) error {
	var id access.KeyID
	text, err := url.PathUnescape(mux.Vars(r)["id"])
	if err != nil || id.UnmarshalText([]byte(text)) != nil {
		return access.ErrUnknownKey
	}
	ctx, cancel := a.work(r)
	defer cancel()
	if _, err := a.Admin.Keys.Revoke(ctx, id, "", exchangeOf(r).meta()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type levelShown struct {
	Level string `json:"level"`
}

// showLevel answers GET /admin/log-level.
func (a *api) showLevel(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, levelShown{a.Admin.Level.Level().String()})
}

// setLevel answers PUT /admin/log-level. A restart restores the configured level.
func (a *api) setLevel(w http.ResponseWriter, r *http.Request) error {
	body, err := a.readBody(w, r)
	if err != nil {
		return err
	}
	var text []byte
	in := reader{data: body}
	if err := in.readDocument(member{"level", func() (err error) { text, err = in.string(); return err }}); err != nil {
		return err
	}
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[string(text)]
	if !ok {
		return ErrInvalidRequest.Because("level is debug, info, warn or error")
	}
	a.Admin.Level.Set(level)
	a.Log.Warn("log level set", "level", level, "by", exchangeOf(r).actor())
	return a.showLevel(w, r)
}

// drain answers POST /admin/drain. From then on /readyz reports not ready, so a load balancer
// sends no new requests here. Requests that still arrive are served.
func (a *api) drain(w http.ResponseWriter, r *http.Request) error {
	a.Log.Warn("draining", "by", exchangeOf(r).actor())
	a.Admin.Drain()
	return reply(w, http.StatusOK, probe{"stopping"})
}

// Lengths of a CPU profile in seconds. profileMax leaves time to answer within the default
// WriteTimeout.
const (
	profileDefault = 10
	profileMax     = 25
)

// profile answers GET /debug/pprof/{profile}. The name "profile", with seconds=N, gives a CPU
// profile; other names are profiles of runtime/pprof.
func (a *api) profile(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "seconds", "debug")
	if err != nil {
		return err
	}
	name := mux.Vars(r)["profile"]
	w.Header().Set("Content-Type", "application/octet-stream")
	if name != "profile" {
		p := pprof.Lookup(name)
		if p == nil {
			return ErrNotFound
		}
		debug, _ := strconv.Atoi(q.Get("debug")) // an invalid number means format 0
		return p.WriteTo(w, min(max(debug, 0), 2))
	}
	seconds, err := strconv.Atoi(q.Get("seconds"))
	if err != nil {
		seconds = profileDefault
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		return ErrInvalidRequest.Because("another profile is being taken")
	}
	defer pprof.StopCPUProfile()
	t := time.NewTimer(time.Duration(min(max(seconds, 1), profileMax)) * time.Second)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
	return nil
}

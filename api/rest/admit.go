package rest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// Scopes of routes that require no scope of an API key.
const (
	// probing is for probes and monitors of the process. Neither keys nor rate limits apply:
	// otherwise a client with the monitor's address could use up its rate and make the process
	// look dead.
	probing access.Scope = "(probe)"
	// public requires no key.
	public access.Scope = "(public)"
)

// Access decides which requests are let in.
type Access struct {
	// Keys returns the current API keys; nil means that there are none. Once the first key
	// exists, every request needs a valid key.
	Keys func() access.State
	// Open lets in requests without a key even if keys exist. A key that is sent is still
	// checked, and its scopes apply.
	Open bool
	// Always requires a key even before the first one exists.
	Always bool
}

// keyless reports whether requests without a key are answered now.
func (a Access) keyless() bool { return a.Open || !a.Always && !a.Current().Closed() }

// Current returns the API keys as of now.
func (a Access) Current() access.State {
	if a.Keys == nil {
		return access.State{}
	}
	return a.Keys()
}

// admit lets a request through to a route, or returns an error that says why not. A request
// with a valid key is charged to that key, every other request to its address. This includes
// requests with an invalid key, so guessing keys is rate limited too.
func (a *api) admit(w http.ResponseWriter, r *http.Request, on *exchange, scope access.Scope) error {
	if scope == probing {
		return nil
	}
	keys := a.Access.Current()
	key, shown, known := authenticate(r, keys, a.Now())
	if id, signed := r.Context().Value(signedIn{}).(access.KeyID); signed {
		entry := keys.Keys[id]
		key, shown, known = entry.Key, true, entry.InForce(a.Now()) && entry.Key.ID == id
	}
	if known {
		on.key, on.payer = &key, a.holder(key)
	} else {
		on.payer = payer{client: client{address: clientAddress(r, a.Rates.TrustedProxies)}, rate: a.Rates.Address, name: "address"}
	}
	if err := a.charge(w, on, 1); err != nil {
		return err
	}
	switch {
	case scope == public:
		return nil
	case shown && !known:
		return unauthorized(w, "the API key is unknown, revoked or expired")
	case !shown && (keys.Closed() || a.Access.Always) && !a.Access.Open:
		return unauthorized(w, "an API key is needed: Authorization: Bearer wt_…, or X-API-Key: wt_…")
	case !known:
		return nil
	case !key.Opens(scope):
		return ErrForbidden.Because("the key lacks the scope %s", scope)
	}
	return nil
}

// still reports whether a request that was let in for a scope would still be let in now. Keys
// are revoked and expire, and the first key shuts out requests without one.
func (a *api) still(on *exchange, scope access.Scope) bool {
	keys := a.Access.Current()
	if on.key == nil {
		return !keys.Closed() && !a.Access.Always || a.Access.Open
	}
	entry, known := keys.Keys[on.key.ID]
	return known && entry.InForce(a.Now()) && entry.Key.Opens(scope)
}

// signedIn is the context key of the API key's id that a session has.
type signedIn struct{}

// SignedIn returns the request as one with this API key. The caller has made sure that the request comes from
// a person who has shown the key.
func SignedIn(r *http.Request, id access.KeyID) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), signedIn{}, id))
}

// unauthorized refuses a request and says how to authenticate (RFC 9110, section 11.6.1).
func unauthorized(w http.ResponseWriter, detail string) error {
	w.Header().Set("WWW-Authenticate", `Bearer realm="watchtower"`)
	return ErrUnauthorized.Because("%s", detail)
}

// authenticate looks for an API key in a request. X-API-Key may carry it, so that Authorization
// stays free for another use. A bearer token of another service, passed on by a gateway, is
// ignored.
func authenticate(r *http.Request, keys access.State, now time.Time) (key access.Key, shown, known bool) {
	own, bearer := r.Header["X-Api-Key"], r.Header["Authorization"]
	var token string
	for _, value := range bearer {
		scheme, rest, _ := strings.Cut(value, " ")
		if rest = strings.TrimLeft(rest, " "); strings.EqualFold(scheme, "Bearer") && access.IsToken(rest) {
			shown = shown || token != "" // two bearer keys count as an invalid key
			token = rest
		}
	}
	for _, value := range own {
		if token != "" && token != value {
			return key, true, false
		}
		token = value
	}
	if token == "" {
		return key, shown || len(own) > 0, false
	}
	if shown {
		return key, true, false
	}
	key, known = keys.Authenticate(token, now)
	return key, true, known
}

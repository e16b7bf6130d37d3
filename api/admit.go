package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// What a route asks for that asks for no scope of a key.
const (
	// probing is for those who watch the process: neither keys nor rates apply, or
	// a client on the same address could have the process taken for dead.
	probing access.Scope = "(probe)"
	// public needs no key.
	public access.Scope = "(public)"
)

// Access says who may come in.
type Access struct {
	// Keys are the API keys as they are now; nil means that there are none. From
	// the first key on, a request needs one that is in force.
	Keys func() access.State
	// Open lets requests in without a key, whatever keys there are. A key that is
	// sent all the same is checked, and holds.
	Open bool
	// Always asks for a key even before there is one.
	Always bool
}

// keyless reports whether requests are answered without a key now.
func (a Access) keyless() bool { return a.Open || !a.Always && !a.keys().Closed() }

func (a Access) keys() access.State {
	if a.Keys == nil {
		return access.State{}
	}
	return a.Keys()
}

// admit lets a request through to a route, or says why not. Whoever shows a good
// key is charged as its holder; everybody else as an address, those with a bad one
// too, so that guessing is limited like the rest.
func (a *api) admit(w http.ResponseWriter, r *http.Request, on *exchange, scope access.Scope) error {
	if scope == probing {
		return nil
	}
	keys := a.Access.keys()
	key, shown, known := authenticate(r, keys, a.Now())
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
		return unauthorized(w, "the API key is not one, or no longer")
	case !shown && (keys.Closed() || a.Access.Always) && !a.Access.Open:
		return unauthorized(w, "an API key is needed: Authorization: Bearer wt_…, or X-API-Key: wt_…")
	case !known:
		return nil
	case !key.Opens(scope):
		return ErrForbidden.Because("the key lacks the scope %s", scope)
	}
	return nil
}

// still reports whether whoever was let in for a scope would be let in now: keys are
// revoked, they expire, and where there was none the first one shuts the others out.
func (a *api) still(on *exchange, scope access.Scope) bool {
	keys := a.Access.keys()
	if on.key == nil {
		return !keys.Closed() && !a.Access.Always || a.Access.Open
	}
	entry, known := keys.Keys[on.key.ID]
	return known && entry.InForce(a.Now()) && entry.Key.Opens(scope)
}

// unauthorized says how to come in (RFC 9110, section 11.6.1).
func unauthorized(w http.ResponseWriter, detail string) error {
	w.Header().Set("WWW-Authenticate", `Bearer realm="watchtower"`)
	return ErrUnauthorized.Because("%s", detail)
}

// authenticate looks for a key in a request. It may stand in X-API-Key, which leaves
// Authorization to what else a route wants there. Another service's bearer token,
// which a gateway passes on, is not meant for us.
func authenticate(r *http.Request, keys access.State, now time.Time) (key access.Key, shown, known bool) {
	own, bearer := r.Header["X-Api-Key"], r.Header["Authorization"]
	var token string
	for _, value := range bearer {
		scheme, rest, _ := strings.Cut(value, " ")
		if rest = strings.TrimLeft(rest, " "); strings.EqualFold(scheme, "Bearer") && access.IsToken(rest) {
			shown = shown || token != "" // two are none
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

package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// endpoint answers a request, or returns an error that says why not. If it returns an error it
// has written nothing.
type endpoint func(w http.ResponseWriter, r *http.Request) error

// within refuses a request about a thing that is not the client's.
type within func(w http.ResponseWriter, r *http.Request) error

// nobody is for routes whose answers concern no sender and no client's own things. A key that is
// bound to senders is refused.
func nobody(_ http.ResponseWriter, r *http.Request) error {
	if key := exchangeOf(r).key; key != nil && len(key.Senders) > 0 {
		return ErrForbidden.Because("the key is bound to senders, and this request names no sender")
	}
	return nil
}

// A route is one method on one path, with the scope that a client needs for it.
type route struct {
	method, path string
	scope        access.Scope
	within       within
	endpoint     endpoint
}

// Internal returns the handler of the listener that is not for clients. exposition answers GET
// /metrics.
func Internal(c Config, exposition http.Handler) http.Handler {
	a := newAPI(c)
	a.internal = true
	metrics := func(w http.ResponseWriter, r *http.Request) error {
		exposition.ServeHTTP(w, r)
		return nil
	}
	routes := []route{
		{http.MethodGet, "/metrics", probing, nobody, metrics},
		{http.MethodGet, problemPath, public, nobody, a.showProblem},
	}
	if c.Admin.Level != nil {
		a.Access = Access{Keys: c.Access.Keys, Always: c.Admin.Exposed}
		a.add(c.Admin.Kinds)
		routes = append(routes, a.adminRoutes()...)
	}
	return a.requests(a.guarded(func() bool {
		// /metrics never needs a key. On an address that other machines can reach, monitors may
		// use any host name once keys are in use.
		return !c.Admin.Exposed || c.Access.keyless()
	}, router(routes)))
}

// router matches paths exactly as they were sent: it cleans no path and never redirects.
func router(routes []route) http.Handler {
	m := mux.NewRouter().SkipClean(true).UseEncodedPath()
	allowed := map[string][]string{}
	for _, t := range routes {
		if t.scope == "" {
			panic("rest: no scope is set for " + t.method + " " + t.path)
		}
		methods := []string{t.method}
		if t.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		allowed[t.path] = append(allowed[t.path], methods...)
		m.Path(t.path).Methods(methods...).HandlerFunc(t.serve)
	}
	for path, methods := range allowed {
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		m.Path(path).HandlerFunc(route{path: path, scope: public, endpoint: func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Allow", allow)
			return ErrMethodNotAllowed.Because("%s answers to %s", path, allow)
		}}.serve)
	}
	m.NotFoundHandler = http.HandlerFunc(route{scope: public, endpoint: func(_ http.ResponseWriter, r *http.Request) error {
		if r.RequestURI == "*" { // HTTP/2 clients begin with it too
			return ErrInvalidRequest.Because("OPTIONS * has no resource")
		}
		return ErrNotFound
	}}.serve)
	return m
}

// serve answers a request, or writes the problem if an error is returned.
func (t route) serve(w http.ResponseWriter, r *http.Request) {
	on := exchangeOf(r)
	if t.path != "" {
		on.route = t.path
	}
	err := on.api.admit(w, r, on, t.scope)
	if err == nil && t.counts() {
		err = on.begin(w)
		defer on.place.end() // after a panic too
	}
	on.sought = on.search()
	if err == nil && t.scope != probing && t.scope != public {
		err = t.within(w, r)
	}
	if err == nil && t.method == http.MethodPost {
		err = notFromPages(r)
	}
	if err == nil {
		err = t.endpoint(w, r)
	}
	if err != nil {
		t.hidden(r, on, err)
		on.fail(w, err)
	}
}

// work returns the context for the work of a request after it has been read. It leaves a tenth
// of WriteTimeout for the answer itself.
func (a *api) work(r *http.Request) (context.Context, context.CancelFunc) {
	left := a.Limits.WriteTimeout*9/10 - a.Now().Sub(exchangeOf(r).began)
	return context.WithTimeout(r.Context(), min(a.Limits.WorkTimeout, left))
}

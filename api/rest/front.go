package rest

import (
	"net/http"

	"github.com/tempo-watchtower/watchtower/domain/access"
)

// A Front serves the routes of a package: with request ids, keys, rates, limits and problems.
type Front struct{ a *api }

// Route is one method on one path, with the scope that a client needs for it.
type Route struct {
	Method, Path string
	Scope        access.Scope // or [Public]
	// Within refuses a request about a thing that is not the client's. It is called before Answer,
	// and before the body is looked at. Nil is for routes whose answers concern no sender and no
	// client's own things: they refuse keys that are bound to senders. Public routes do not call it.
	Within func(Request) error
	// Once has a request with an Idempotency-Key answered once: see [Idempotency].
	Once bool
	// Answer answers a request, or returns an error that says why not. If it returns an error
	// it must not have written anything.
	Answer func(Request) error
}

// Public is the scope of routes that need no key.
const Public = public

// NewFront returns a front. It panics if the configuration cannot work. The rows are searched after
// those for all APIs.
func NewFront(c Config, rows ...Kind) *Front {
	if len(c.CursorKey) < CursorKeyBytes {
		panic("rest: the cursor key is too short")
	}
	if c.Limits.BodyBytes <= 0 || c.Limits.BatchItems <= 0 || c.Limits.WorkTimeout <= 0 ||
		c.Limits.Streams <= 0 || c.Limits.StreamSilence <= 0 || c.Limits.StreamWrite <= 0 {
		panic("rest: a limit is not set")
	}
	a := newAPI(c)
	a.add(rows)
	return &Front{a}
}

// add appends rows to the table that maps refusals to HTTP, after those for all APIs.
func (a *api) add(rows []Kind) { a.more = append(a.more, rows...) }

// route returns a package's route as the router serves it.
func (a *api) route(r Route) route {
	served := route{r.Method, r.Path, r.Scope, nobody, func(w http.ResponseWriter, hr *http.Request) error {
		return r.Answer(Request{hr, w, exchangeOf(hr)})
	}}
	if r.Within != nil {
		served.within = func(w http.ResponseWriter, hr *http.Request) error { return r.Within(Request{hr, w, exchangeOf(hr)}) }
	}
	if r.Once {
		served.endpoint = a.once(served.endpoint)
	}
	return served
}

// Handler serves the routes.
func (f *Front) Handler(all []Route) http.Handler {
	routes := make([]route, len(all))
	for i, r := range all {
		routes[i] = f.a.route(r)
	}
	return f.a.requests(f.a.guarded(f.a.Access.keyless, crossOrigin(f.a.Origins, router(routes))))
}

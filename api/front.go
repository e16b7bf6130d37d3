package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// A Front answers the requests of routes that another package brings as [New] answers
// its own: with the same request ids, keys, rates, bounds and problems.
type Front struct{ a *api }

// Route is one method on one path, and what a client needs for it.
type Route struct {
	Method, Path string
	Scope        access.Scope // or [Public]
	// Answer answers a request, or says with an error why not; then it has written
	// nothing.
	Answer func(Request) error
}

// Public is the scope of what needs no key.
const Public = public

// Kind is one more row of the table from refusals to HTTP.
type Kind struct {
	Code   event.Refusal
	Status int
	Title  string
}

// NewFront makes a front. Of the configuration it needs what does not deliver: who may
// come in, how often and how much; the clock, the cursors' key and where to log. The rows
// are looked at after those of the API itself.
func NewFront(c Config, rows ...Kind) *Front {
	if len(c.CursorKey) < CursorKeyBytes {
		panic("api: the cursor key is too short")
	}
	if c.Limits.BodyBytes <= 0 || c.Limits.BatchItems <= 0 || c.Limits.WorkTimeout <= 0 ||
		c.Limits.Streams <= 0 || c.Limits.StreamSilence <= 0 || c.Limits.StreamWrite <= 0 {
		panic("api: a limit is not set")
	}
	a := newAPI(c)
	a.add(rows)
	return &Front{a}
}

// add takes rows into the table from refusals to HTTP, after the API's own.
func (a *api) add(rows []Kind) {
	for _, r := range rows {
		a.more = append(a.more, kind{r.Code, r.Status, r.Title})
	}
}

func (r Route) route() route {
	return route{r.Method, r.Path, r.Scope, nobody, func(w http.ResponseWriter, hr *http.Request) error {
		return r.Answer(Request{hr, w, exchangeOf(hr)})
	}}
}

// Handler answers the routes' requests.
func (f *Front) Handler(all []Route) http.Handler {
	routes := make([]route, len(all))
	for i, r := range all {
		routes[i] = r.route()
	}
	return f.a.requests(f.a.guarded(f.a.Access.keyless, crossOrigin(f.a.Origins, router(routes))))
}

// Request is one request, and where its answer goes.
type Request struct {
	*http.Request
	w  http.ResponseWriter
	on *exchange
}

// Key is what the request was sent with; ok is false when there was none.
func (r Request) Key() (key access.Key, ok bool) {
	if r.on.key == nil {
		return key, false
	}
	return *r.on.key, true
}

// Meta says in events which request caused them.
func (r Request) Meta() event.Meta { return r.on.meta() }

// ID is that of the request, for the log.
func (r Request) ID() string { return r.on.id }

// Query is the request's query, each name of which is one of these, and given once.
// Only status may be given more often.
func (r Request) Query(known ...string) (url.Values, error) {
	q, err := readParameters(r.Request, known...)
	return q.values, err
}

// HasBody reports whether there is a body to be read.
func (r Request) HasBody() bool { return hasBody(r.Request) }

// ReadBody reads the whole body, which has to be JSON.
func (r Request) ReadBody() ([]byte, error) { return r.on.api.readBody(r.w, r.Request) }

// Charge charges the request as n in all, before work is done for them.
func (r Request) Charge(n int) error { return r.on.api.chargeUpTo(r.w, r.on, n) }

// ChargeUpToBurst charges as [Request.Charge] does, but never more than the client's burst: no
// rate forbids for ever what concerns many at once.
func (r Request) ChargeUpToBurst(n int) error { return r.Charge(min(n, r.on.payer.rate.Burst)) }

// Work bounds what is done for the request once it has been read.
func (r Request) Work() (context.Context, context.CancelFunc) { return r.on.api.work(r.Request) }

// Rest lets the request wait, unless as many of the client's do as may. wake ends it.
func (r Request) Rest() (wake func(), room bool) {
	awake := r.on.api.idle(r.w, r.Request)
	leave, room := r.on.rest()
	return func() { leave(); awake() }, room
}

// Span reads where the stream begins and ends that a request asks for: by after and until
// in its query, which know of them, or by where the client was cut.
func (r Request) Span(q url.Values) (Span, error) { return parameters{q}.span(r.Request) }

// Stream answers with a stream of events, for as long as the client listens.
func (r Request) Stream(s Stream) error { return r.on.api.streamed(r.w, r.Request, s) }

// Problem is what an error comes to.
func (r Request) Problem(err error) Problem {
	r.on.overQuota(err)
	p := r.on.api.problem(err)
	p.RequestID = r.on.id
	return p
}

// Note adds to the request's line in the log. trouble, if any, is what was answered in a
// part of the answer.
func (r Request) Note(trouble error, facts ...slog.Attr) {
	r.on.note(facts...)
	r.on.err = trouble
}

// Answering is the header of the answer.
func (r Request) Answering() http.Header { return r.w.Header() }

// Reply answers with a value as JSON.
func (r Request) Reply(status int, v any) error { return reply(r.w, status, v) }

// Document answers with what changes with the program only.
func (r Request) Document(contentType string, content []byte) error {
	return document(r.w, contentType, content)
}

// Cursor makes the cursor of what comes after a position in a list, which is told from
// others by its text.
func (r Request) Cursor(at event.Position, list string) string {
	return cursorAfter(r.on.api.CursorKey, at, list)
}

// ReadCursor refuses what [Request.Cursor] has not made for this list.
func (r Request) ReadCursor(cursor, list string) (event.Position, error) {
	return readCursor(r.on.api.CursorKey, cursor, list)
}

// Waited says what a wait came to.
type Waited = waited

// ReadWait reads for which of these a request wants to wait, and how long; empty when it
// does not.
func ReadWait(q url.Values, names ...string) (name string, timeout time.Duration, err error) {
	return parameters{q}.awaited(names)
}

// WaitEnded names why a wait was over before its end.
func WaitEnded(err error) string { return because(err) }

// Why a wait is not reached, beside what [WaitEnded] names.
const (
	WaitHopeless = becauseEnded // it no longer can be
	WaitBusy     = becauseBusy
)

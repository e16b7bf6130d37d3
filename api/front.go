package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// A Front serves routes of another package like [New] serves the API's own routes: with the
// same request ids, keys, rates, limits and problems.
type Front struct{ a *api }

// Route is one method on one path, with the scope that a client needs for it.
type Route struct {
	Method, Path string
	Scope        access.Scope // or [Public]
	// Answer answers a request, or returns an error that says why not. If it returns an error
	// it must not have written anything.
	Answer func(Request) error
}

// Public is the scope of routes that need no key.
const Public = public

// Kind is an additional row of the table that maps refusals to HTTP.
type Kind struct {
	Code   eventlog.Refusal
	Status int
	Title  string
}

// NewFront returns a front. It uses the parts of the configuration that do not deliver: access,
// rates and limits, the clock, the cursor key and the log. The rows are searched after the
// API's own.
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

// add appends rows to the table that maps refusals to HTTP, after the API's own.
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

// Handler serves the routes.
func (f *Front) Handler(all []Route) http.Handler {
	routes := make([]route, len(all))
	for i, r := range all {
		routes[i] = r.route()
	}
	return f.a.requests(f.a.guarded(f.a.Access.keyless, crossOrigin(f.a.Origins, router(routes))))
}

// Request is one request with its response writer.
type Request struct {
	*http.Request
	w  http.ResponseWriter
	on *exchange
}

// Key is the API key of the request; ok is false if there is none.
func (r Request) Key() (key access.Key, ok bool) {
	if r.on.key == nil {
		return key, false
	}
	return *r.on.key, true
}

// Meta is the event metadata that names this request as the cause.
func (r Request) Meta() eventlog.Meta { return r.on.meta() }

// ID is the request id, for the log.
func (r Request) ID() string { return r.on.id }

// Query parses the request's query. Only the known names may occur, each once; status may occur
// several times.
func (r Request) Query(known ...string) (url.Values, error) {
	q, err := readParameters(r.Request, known...)
	return q.values, err
}

// HasBody reports whether the request has a body.
func (r Request) HasBody() bool { return hasBody(r.Request) }

// ReadBody reads the whole body. Its Content-Type must be application/json.
func (r Request) ReadBody() ([]byte, error) { return r.on.api.readBody(r.w, r.Request) }

// Charge brings the request's total charge to n, before the work is done.
func (r Request) Charge(n int) error { return r.on.api.chargeUpTo(r.w, r.on, n) }

// ChargeUpToBurst charges as [Request.Charge] does, but never more than the client's burst: no
// rate forbids a large request for ever.
func (r Request) ChargeUpToBurst(n int) error { return r.Charge(min(n, r.on.payer.rate.Burst)) }

// ChargeInFull brings the total charge for the request to n. Units beyond the client's burst are
// charged after the fact: no rate forbids a large request for ever, and none is free.
func (r Request) ChargeInFull(n int) error {
	if err := r.ChargeUpToBurst(n); err != nil {
		return err
	}
	r.on.chargeAfter(r.w, n)
	return nil
}

// ChargeRead charges for more bytes of the client's own that the request has read, after the fact. The
// answer is sent all the same; the client pays before its next request.
func (r Request) ChargeRead(bytes int) { r.on.chargeRead(r.w, bytes) }

// Work returns the context for the work after the request has been read.
func (r Request) Work() (context.Context, context.CancelFunc) { return r.on.api.work(r.Request) }

// FoundNothing waits if the request looked for one thing and nothing is shown of it, so that the time
// of the answer does not tell another client's thing from an unknown one.
func (r Request) FoundNothing() { r.on.sought.foundNothing(r.Context()) }

// Rest lets the request wait, unless the client's share of waiting requests is used up. wake
// ends the wait.
func (r Request) Rest() (wake func(), room bool) {
	awake := r.on.api.idle(r.w, r.Request)
	leave, room := r.on.rest()
	return func() { leave(); awake() }, room
}

// Span reads where the requested stream begins and ends, from after and until in the query and
// from Last-Event-ID. The caller must have let Query accept after and until.
func (r Request) Span(q url.Values) (Span, error) { return parameters{q}.span(r.Request) }

// Stream answers with an event stream, for as long as the client listens.
func (r Request) Stream(s Stream) error { return r.on.api.streamed(r.w, r.Request, s) }

// Problem returns the problem for an error.
func (r Request) Problem(err error) Problem {
	r.on.overQuota(err)
	p := r.on.api.problem(err)
	p.RequestID = r.on.id
	return p
}

// Note adds attributes to the request's log line. trouble, if any, is the error answered for a
// part of the request.
func (r Request) Note(trouble error, facts ...slog.Attr) {
	r.on.note(facts...)
	r.on.err = trouble
}

// Answering returns the header of the answer.
func (r Request) Answering() http.Header { return r.w.Header() }

// Reply answers with a value as JSON.
func (r Request) Reply(status int, v any) error { return reply(r.w, status, v) }

// ReplyRead answers with a value as JSON, and charges for the bytes of the answer, or for the bytes
// that the request has read: see [Request.ChargeRead]. The larger number counts.
func (r Request) ReplyRead(status int, v any) error { return replyRead(r.w, r.on, status, v) }

// Document answers with content that changes only with a new version of the program.
func (r Request) Document(contentType string, content []byte) error {
	return document(r.w, contentType, content)
}

// Cursor returns the cursor for the part of a list after a position. The text list tells one
// list from another.
func (r Request) Cursor(at eventlog.Position, list string) string {
	return cursorAfter(r.on.api.CursorKey, at, list)
}

// ReadCursor reads a cursor, and refuses a cursor that [Request.Cursor] did not make for this
// list.
func (r Request) ReadCursor(cursor, list string) (eventlog.Position, error) {
	return readCursor(r.on.api.CursorKey, cursor, list)
}

// Waited is the result of a wait.
type Waited = waited

// ReadWait reads which of the names a request wants to wait for, and for how long. name is
// empty if the request does not wait.
func ReadWait(q url.Values, names ...string) (name string, timeout time.Duration, err error) {
	return parameters{q}.awaited(names)
}

// WaitEnded returns the reason why a wait ended early.
func WaitEnded(err error) string { return because(err) }

// Reasons for a wait that did not reach its goal, beside the results of [WaitEnded].
const (
	WaitHopeless = becauseEnded // it can no longer be reached
	WaitBusy     = becauseBusy
)

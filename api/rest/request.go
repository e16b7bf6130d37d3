package rest

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

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

// Client is the client that sent the request. All requests without a key belong to one client, with
// the empty name.
func (r Request) Client() string { return r.on.client() }

// Own records that the client owns the thing in the path, for [Request.Owns].
func (r Request) Own() { r.on.owns = true }

// Owns reports whether the route's Within found that the client owns the thing in the path.
func (r Request) Owns() bool { return r.on.owns }

// Meta is the event metadata that names this request as the cause.
func (r Request) Meta() eventlog.Meta { return r.on.meta() }

// ID is the request id, for the log.
func (r Request) ID() string { return r.on.id }

// Query parses the request's query. Only the known names may occur, each once; status may occur
// several times.
func (r Request) Query(known ...string) (url.Values, error) {
	return readQuery(r.Request, known...)
}

// IdempotencyKey is the request's Idempotency-Key; empty if it has none.
func (r Request) IdempotencyKey() (string, error) {
	given := r.Header["Idempotency-Key"]
	if len(given) == 0 {
		return "", nil
	}
	return readIdempotencyKey(given)
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

// ChargeAfter brings the total charge for the request to n, after the work. The client's next
// request pays first for units that its bucket does not have.
func (r Request) ChargeAfter(n int) { r.on.chargeAfter(r.w, n) }

// Affords charges n more if the client can pay now, and reports whether it did.
func (r Request) Affords(n int) bool { return r.on.affords(r.w, n) }

// Burst is the most units that the client may be charged at once; 0 for a client without a rate.
func (r Request) Burst() int { return r.on.payer.rate.Burst }

// ReadUnits returns the charge for bytes that were read or are sent: at most the client's burst.
func (r Request) ReadUnits(bytes int) int { return r.on.readUnits(bytes) }

// RetrySoon tells a client to repeat a request in a second, when others of its requests have
// ended.
func (r Request) RetrySoon() { retrySoon(r.w) }

// ChargeRead charges for more bytes of the client's own that the request has read, after the fact. The
// answer is sent all the same; the client pays before its next request.
func (r Request) ChargeRead(bytes int) { r.on.chargeRead(r.w, bytes) }

// Work returns the context for the work after the request has been read.
func (r Request) Work() (context.Context, context.CancelFunc) { return r.on.api.work(r.Request) }

// FoundNothing waits if the request looked for one thing and nothing is shown of it, so that the time
// of the answer does not tell another client's thing from an unknown one.
func (r Request) FoundNothing() { r.on.sought.foundNothing(r.Context()) }

// SeekAnew begins the search for the thing in the path again: the time until now depended on
// something else.
func (r Request) SeekAnew() { r.on.sought = r.on.search() }

// Search begins a search for one thing by its id. If nothing is shown of it, the caller waits for
// absent before it answers, so that the time of the answer does not depend on the search.
func (r Request) Search() (absent func(context.Context)) { return r.on.search().foundNothing }

// Rest lets the request wait, unless the client's share of waiting requests is used up. wake
// ends the wait.
func (r Request) Rest() (wake func(), room bool) {
	awake := r.on.api.idle(r.w, r.Request)
	leave, room := r.on.rest()
	return func() { leave(); awake() }, room
}

// RestCall lets one of several calls in the request wait, unless the client's share of waiting
// requests is used up. Unlike [Request.Rest] it leaves the request's deadlines.
func (r Request) RestCall() (leave func(), room bool) { return r.on.rest() }

// Span reads where the requested stream begins and ends, from after and until in the query and
// from Last-Event-ID. The caller must have let Query accept after and until.
func (r Request) Span(q url.Values) (Span, error) { return span(r.Request, q) }

// Stream answers with an event stream, for as long as the client listens.
func (r Request) Stream(s Stream) error { return r.on.api.streamed(r.w, r.Request, s) }

// Problem returns the problem for an error.
func (r Request) Problem(err error) Problem {
	r.on.overQuota(err)
	return r.ProblemUnlogged(err)
}

// ProblemUnlogged is [Request.Problem] without the log line about a client over its quota.
func (r Request) ProblemUnlogged(err error) Problem {
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

// Writer writes an answer that no other method of Request writes.
func (r Request) Writer() http.ResponseWriter { return r.w }

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

// PlaceCursor is [Request.Cursor] for a place that takes several numbers to name.
func (r Request) PlaceCursor(list string, place ...uint64) string {
	return cursorOf(r.on.api.CursorKey, list, place...)
}

// ReadPlace is [Request.ReadCursor] for a place of several numbers.
func (r Request) ReadPlace(cursor, list string, numbers int) ([]uint64, error) {
	return readPlace(r.on.api.CursorKey, cursor, list, numbers)
}

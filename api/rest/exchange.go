package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// An exchange is one request with the facts learned while answering it.
type exchange struct {
	api    *api
	began  time.Time   // start of the request, moved on by the time that it waited on the client's behalf
	id     string      // X-Request-Id: echoed, shown in problems, logged
	trace  string      // the W3C traceparent; empty if there is none
	route  string      // the path's template
	payer  payer       // the client that is charged
	key    *access.Key // the request's API key; nil if it has none
	owns   bool        // the client owns the thing in the path: see [Request.Own]
	sought search      // the search for the thing in the path
	place  *place      // the request's place among the client's requests in progress; nil if it does not count
	paid   int
	read   int   // bytes of the client's own that the request has read: see chargeRead
	err    error // the error that was answered, in whole or in part
	facts  []slog.Attr
}

type exchangeKey struct{}

func exchangeOf(r *http.Request) *exchange { return r.Context().Value(exchangeKey{}).(*exchange) }

// requests gives each request its id, recovers panics, and reports the outcome to the log and
// metrics.
func (a *api) requests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		on := &exchange{api: a, began: a.Now(), id: requestID(r, a.Random), trace: traceparent(r), route: "none"}
		header := w.Header()
		header.Set("X-Request-Id", on.id)
		if on.trace != "" {
			header.Set("Traceparent", on.trace)
		}
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		if len(r.TransferEncoding) > 0 {
			// The request may also have had a Content-Length, which net/http hides. Then the
			// connection must be closed (RFC 9112, section 6.1).
			header.Set("Connection", "close")
		}

		answer := &answer{ResponseWriter: w}
		defer func() {
			if cause := recover(); cause != nil {
				a.panicked(answer, on, cause)
			}
			a.ended(r, on, answer, a.Now().Sub(on.began))
		}()
		next.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, on)))
	})
}

// panicked answers a request that panicked. Only this request ends: it has left nothing in
// memory that other requests could read.
func (a *api) panicked(w *answer, on *exchange, cause any) {
	on.err = fmt.Errorf("panic: %v", cause)
	a.Log.Error("request panicked", "request", on.id, "cause", cause, "stack", string(debug.Stack()))
	if w.status == 0 {
		on.fail(w, on.err)
	}
}

func (a *api) ended(r *http.Request, on *exchange, w *answer, took time.Duration) {
	method := r.Method
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other"
	}
	level := slog.LevelDebug
	switch {
	case r.Context().Err() != nil: // the client has gone, and that explains any failure
		level = slog.LevelInfo
	case w.status == http.StatusServiceUnavailable, w.status == http.StatusOK && on.err != nil:
		level = slog.LevelWarn
	case w.status >= http.StatusInternalServerError:
		level = slog.LevelError
	case w.status >= http.StatusBadRequest:
		level = slog.LevelInfo
	}
	facts := append(on.facts,
		slog.String("request", on.id), slog.String("method", method), slog.String("route", on.route),
		slog.Int("status", w.status), slog.Duration("took", took))
	if on.key != nil {
		facts = append(facts, slog.String("key", on.key.ID.String()))
	}
	if on.err != nil {
		facts = append(facts, slog.Any("err", on.err))
	}
	a.Log.LogAttrs(r.Context(), level, "request", facts...)
	if a.Requested != nil {
		a.Requested(on.route, method, strconv.Itoa(w.status), took)
	}
	if a.Traced != nil && on.trace != "" {
		a.Traced(on.trace, on.route, method, strconv.Itoa(w.status), a.Now().Add(-took), took)
	}
}

// note adds attributes to the request's log line.
func (on *exchange) note(facts ...slog.Attr) { on.facts = append(on.facts, facts...) }

// overQuota logs which client exceeded a quota, at most once a minute per client.
func (on *exchange) overQuota(err error) {
	if !errors.Is(err, access.ErrQuotaExceeded) {
		return
	}
	client := ""
	if on.key != nil {
		client = on.key.Owner()
	}
	if on.api.refused.Due(client, on.api.Now()) {
		on.api.Log.Warn("a quota refuses a client", "client", client, "request", on.id, "err", err)
	}
}

// fail writes the problem for an error.
func (on *exchange) fail(w http.ResponseWriter, err error) {
	on.err = err
	on.overQuota(err)
	p := on.api.problem(err)
	p.RequestID = on.id
	header := w.Header()
	if p.Retryable && header["Retry-After"] == nil {
		header.Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
	}
	if p.Status == http.StatusRequestTimeout || p.Status == http.StatusRequestEntityTooLarge {
		header.Set("Connection", "close") // the rest of the body is not read
	}
	// A Problem can always be encoded.
	_ = write(w, p.Status, "application/problem+json", p)
}

// retryAfter is the wait suggested to clients while a database cannot be reached: a failover
// takes seconds.
const retryAfter = 2 * time.Second

// meta is the event metadata that names this request as the cause.
func (on *exchange) meta() eventlog.Meta {
	return eventlog.Meta{Correlation: correlation(on.id), Actor: on.actor(), Trace: on.trace}
}

// KeylessActor is the actor of events caused by requests without a key.
const KeylessActor = "api"

// actor returns the actor for the request's events.
func (on *exchange) actor() string {
	if on.key == nil {
		return KeylessActor
	}
	return access.Actor(on.key.ID)
}

// client returns the client that sent the request. All requests without a key belong to one
// client, with the empty name.
func (on *exchange) client() string {
	if on.key == nil {
		return ""
	}
	return on.key.Owner()
}

// correlation is the request id itself if it is a UUID. Otherwise it is a UUID derived from the
// request id: the same request id always gives the same correlation.
func correlation(requestID string) (id eventlog.ID) {
	if id.UnmarshalText([]byte(requestID)) == nil && id.String() == strings.ToLower(requestID) {
		return id
	}
	return eventlog.DeriveID(eventlog.Stream("request-"+requestID), eventlog.ID{}, 0)
}

const requestIDMax = 128

// requestID is the client's X-Request-Id if it is well formed, else a new one: a malformed id
// is never echoed.
func requestID(r *http.Request, random io.Reader) string {
	if given := r.Header.Values("X-Request-Id"); len(given) == 1 && isRequestID(given[0]) {
		return given[0]
	}
	var id eventlog.ID
	if _, err := io.ReadFull(random, id[:]); err != nil {
		panic(fmt.Sprintf("rest: draw a request id: %v", err))
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // RFC 9562, version 4
	return id.String()
}

// isRequestID reports whether s is of the form [A-Za-z0-9._:-]{1,128}.
func isRequestID(s string) bool {
	return s != "" && len(s) <= requestIDMax && madeOf(s, func(c rune) bool {
		return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.ContainsRune("._:-", c)
	})
}

func isHex(s string, digits int) bool {
	return len(s) == digits && madeOf(s, func(c rune) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' })
}

func madeOf(s string, allowed func(rune) bool) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return !allowed(c) })
}

// traceparent is the request's W3C trace context; empty if it is missing or malformed. Source:
// W3C Trace Context, section 3.2.
func traceparent(r *http.Request) string {
	given := r.Header.Values("Traceparent")
	if len(given) != 1 {
		return ""
	}
	parts := strings.Split(given[0], "-")
	wellFormed := len(parts) == 4 &&
		isHex(parts[0], 2) && isHex(parts[1], 32) && isHex(parts[2], 16) && isHex(parts[3], 2) &&
		parts[0] != "ff" && strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
	if !wellFormed {
		return ""
	}
	return given[0]
}

// An answer remembers the status that was sent.
type answer struct {
	http.ResponseWriter
	status int
}

func (w *answer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *answer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is used by http.ResponseController.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// reply sends a value as JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	return write(w, status, "application/json", v)
}

// replyRead sends a value as JSON, and charges for the bytes sent, or for the bytes that the request
// has read. The larger number counts.
func replyRead(w http.ResponseWriter, on *exchange, status int, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	on.chargeAfter(w, on.readUnits(len(body)))
	send(w, status, "application/json", body)
	return nil
}

// write encodes the whole body before it sends the first byte, so an encoding error can still
// be answered with a problem.
func write(w http.ResponseWriter, status int, contentType string, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	send(w, status, contentType, body)
	return nil
}

// encode encodes a body, or a part of one, with a line break at its end.
func encode(v any) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // recorded data is sent as it was recorded
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return body.Bytes(), nil
}

// send sends a body.
func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client is gone
}

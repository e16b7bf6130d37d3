package rest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/api/webguard"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Refusals that every API may answer. docs/reference/problems.md explains each to clients.
const (
	ErrMalformedJSON         = eventlog.Refusal("malformed-json")
	ErrInvalidRequest        = eventlog.Refusal("invalid-request")
	ErrPayloadTooLarge       = eventlog.Refusal("payload-too-large")
	ErrRequestTimeout        = eventlog.Refusal("request-timeout")
	ErrUnsupportedMediaType  = eventlog.Refusal("unsupported-media-type")
	ErrUnsupportedEncoding   = eventlog.Refusal("unsupported-encoding")
	ErrEmptyBatch            = eventlog.Refusal("empty-batch")
	ErrBatchTooLarge         = eventlog.Refusal("batch-too-large")
	ErrInvalidAddress        = eventlog.Refusal("invalid-address")
	ErrInvalidFilter         = eventlog.Refusal("invalid-filter")
	ErrInvalidLimit          = eventlog.Refusal("invalid-limit")
	ErrInvalidCursor         = eventlog.Refusal("invalid-cursor")
	ErrTooManyStreams        = eventlog.Refusal("too-many-streams")
	ErrNotFound              = eventlog.Refusal("not-found")
	ErrMethodNotAllowed      = eventlog.Refusal("method-not-allowed")
	ErrInvalidIdempotencyKey = eventlog.Refusal("invalid-idempotency-key")
	ErrIdempotencyConflict   = eventlog.Refusal("idempotency-conflict")
	ErrIdempotencyRunning    = eventlog.Refusal("idempotency-in-progress")
	ErrUnauthorized          = eventlog.Refusal("unauthorized")
	ErrForbidden             = eventlog.Refusal("forbidden")
	ErrForeignSender         = eventlog.Refusal("foreign-sender")
	ErrRateLimited           = eventlog.Refusal("rate-limited")
)

// Codes of errors that are not refusals, but are answered like one.
const (
	invalidTransaction = eventlog.Refusal("invalid-transaction") // a *chain.Malformed
	wrongChain         = eventlog.Refusal("wrong-chain")         // a *chain.Malformed
	txTooLarge         = eventlog.Refusal("tx-too-large")        // a *chain.Malformed
	unavailable        = eventlog.Refusal("unavailable")
	chainUnavailable   = eventlog.Refusal("chain-unavailable")
	OutcomeUnknown     = eventlog.Refusal("outcome-unknown")
	internal           = eventlog.Refusal("internal")
)

// Kind is one row of the table that maps errors to HTTP.
type Kind struct {
	// Code never changes, because client programs branch on it.
	Code   eventlog.Refusal
	Status int
	Title  string
	// Meaning explains the code to the people who write clients: what happened and what to do. Code
	// stands in backquotes. docs/reference has the same text.
	Meaning string
	// Of, when set, is an error beside the refusal Code that is answered with this row. Detail is
	// its text for clients: the error's own text may contain internals.
	Of     error
	Detail string
}

// Kinds returns the rows for all APIs.
func Kinds() []Kind { return slices.Clone(kinds[:]) }

// kinds is the table. A [Front] adds the rows of its routes. An error without a row is internal.
var kinds = [...]Kind{
	{Code: ErrMalformedJSON, Status: http.StatusBadRequest, Title: "The body is not JSON",
		Meaning: "The body is not JSON, or is JSON that different programs read differently: a byte order mark, invalid UTF-8, half a surrogate pair, a NUL, text after the end."},
	{Code: ErrInvalidRequest, Status: http.StatusBadRequest, Title: "The request does not have the expected form",
		Meaning: "The body is JSON, but not in the form that this endpoint expects. A member is missing, unknown, repeated or in another case, or a value is null, of another type or out of range. Also used for a body that broke off."},
	{Code: ErrPayloadTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The body is too large",
		Meaning: "The body is over the limit (1 MiB unless set otherwise; `/health` shows it). The connection is closed."},
	{Code: ErrRequestTimeout, Status: http.StatusRequestTimeout, Title: "The body did not arrive in time",
		Meaning: "The body did not arrive in time. Nothing was done."},
	{Code: ErrUnsupportedMediaType, Status: http.StatusUnsupportedMediaType, Title: "The body must be application/json",
		Meaning: "`Content-Type` is not `application/json`. A `POST` without a body needs it too, unless it has an API key, a signature or an `Idempotency-Key` in a header. Web pages cannot send these headers without a preflight (CORS)."},
	{Code: ErrUnsupportedEncoding, Status: http.StatusUnsupportedMediaType, Title: "The body must not be compressed",
		Meaning: "`Content-Encoding` is something other than `identity`."},
	{Code: ErrEmptyBatch, Status: http.StatusBadRequest, Title: "The batch is empty",
		Meaning: "`transactions` is empty."},
	{Code: ErrBatchTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The batch has too many transactions",
		Meaning: "`transactions` holds more than 1000 (unless set otherwise)."},
	{Code: ErrInvalidAddress, Status: http.StatusBadRequest, Title: "This is not an address",
		Meaning: "The sender in the path is not `0x` and 40 hex digits."},
	{Code: ErrInvalidFilter, Status: http.StatusBadRequest, Title: "A query parameter cannot be used like this",
		Meaning: "A query parameter is unknown, repeated, not of its type, or excludes another one."},
	{Code: ErrInvalidLimit, Status: http.StatusBadRequest, Title: "The limit is out of range",
		Meaning: "`limit` is not a number from 1 to 1000."},
	{Code: ErrInvalidCursor, Status: http.StatusBadRequest, Title: "The cursor does not belong to this list",
		Meaning: "This service did not make the cursor, or made it for a list with other filters."},
	{Code: ErrTooManyStreams, Status: http.StatusServiceUnavailable, Title: "Too many streams of events are open",
		Meaning: "This process serves its maximum of 256 streams of events. Retry, or use another replica."},
	{Code: ErrNotFound, Status: http.StatusNotFound, Title: "There is no such path",
		Meaning: "There is nothing at this path. The service neither corrects nor redirects paths."},
	{Code: ErrMethodNotAllowed, Status: http.StatusMethodNotAllowed, Title: "The method is not allowed here",
		Meaning: "`Allow` lists the methods of this path."},
	{Code: ErrInvalidIdempotencyKey, Status: http.StatusBadRequest, Title: "The idempotency key cannot be used",
		Meaning: "The idempotency key is not 1 to 256 printable ASCII characters without spaces (0x21 to 0x7E), or `Idempotency-Key` is sent twice, or differs from the member `key` of an intent."},
	{Code: ErrIdempotencyConflict, Status: http.StatusUnprocessableEntity, Title: "The idempotency key belongs to another request",
		Meaning: "The `Idempotency-Key` was used for a request with other content. Nothing was done."},
	{Code: access.ErrUnknownKey, Status: http.StatusNotFound, Title: "The API key is not known",
		Meaning: "On the internal listener: there is no API key with this id."},
	{Code: access.ErrInvalidKey, Status: http.StatusUnprocessableEntity, Title: "The API key cannot have these properties",
		Meaning: "On the internal listener: the name, client, scope, sender, rate or expiry of the requested key is not valid."},
	{Code: access.ErrTooManyKeys, Status: http.StatusConflict, Title: "There are too many API keys",
		Meaning: "On the internal listener: 1000 API keys are in force."},
	{Code: ErrIdempotencyRunning, Status: http.StatusConflict, Title: "The same request is being carried out",
		Meaning: "The first request with this `Idempotency-Key` is still in progress. Repeat this request; `Retry-After` says when."},
	{Code: ErrUnauthorized, Status: http.StatusUnauthorized, Title: "An API key is required",
		Meaning: "The request needs an API key. It has none, or its key is mistyped, revoked or expired."},
	{Code: ErrForbidden, Status: http.StatusForbidden, Title: "The API key lacks the scope for this",
		Meaning: "The API key lacks the scope, or is bound to senders and the request does not concern a sender."},
	{Code: ErrForeignSender, Status: http.StatusForbidden, Title: "The API key does not cover this sender",
		Meaning: "The API key is bound to senders, and the transaction's sender is not among them."},
	{Code: webguard.ErrHost, Status: http.StatusForbidden, Title: "The service is not reachable under this name",
		Meaning: "The service answers without API keys, and the request's `Host` is neither an IP address nor a loopback name nor one of `api.hosts`, or it is `0.0.0.0`, `[::]` or `[::ffff:127.0.0.1]`. See security.md."},
	{Code: webguard.ErrOrigin, Status: http.StatusForbidden, Title: "Pages of this origin are not allowed",
		Meaning: "The service answers without API keys, and a web page caused the request whose origin is neither the service's own nor one of `api.origins`."},
	{Code: ErrRateLimited, Status: http.StatusTooManyRequests, Title: "Too many requests",
		Meaning: "Too many requests from this client; an intent counts as one, and each of its webhooks as one more. `Retry-After` says in how many seconds this one may be repeated; `RateLimit` and `RateLimit-Policy` describe the limit. Or the client has reached its maximum of requests in progress, or of waiting lists: `detail` says so, and `Retry-After` is 1. Nothing was done."},
	{Code: access.ErrQuotaExceeded, Status: http.StatusTooManyRequests, Title: "A quota of the client is used up",
		Meaning: "A quota of this client is used up. `detail` names the quota, its limit and the present use. The refused item was not accepted; repeat it when some of the client's earlier work has ended. For `quota.deliveries`, that is when queued webhook deliveries have arrived, or without webhooks at once."},
	{Code: commands.ErrUnsupportedChain, Status: http.StatusUnprocessableEntity, Title: "The chain is not served here",
		Meaning: "The service does not serve this chain; `/health` lists the chains that it serves."},
	{Code: invalidTransaction, Status: http.StatusUnprocessableEntity, Title: "The transaction can never be valid",
		Meaning: "The bytes can never be a valid transaction. `reason` says why; see below."},
	{Code: wrongChain, Status: http.StatusUnprocessableEntity, Title: "The transaction is signed for another chain",
		Meaning: "The transaction is signed for a chain that the request does not name."},
	{Code: txTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The transaction is too large",
		Meaning: "The transaction is over 128 KiB. No node's pool accepts it."},
	{Code: unavailable, Status: http.StatusServiceUnavailable, Title: "The service cannot do this now",
		Meaning: "A required database cannot be reached, or accepts no writes, for example because its disk is full. Nothing was done. Repeat the request."},
	{Code: chainUnavailable, Status: http.StatusServiceUnavailable, Title: "The chain cannot be queried now",
		Meaning: "The request needs an answer from the chain, and no node gives a reliable answer, or the client's share of the nodes' calls is used up. Nothing was changed. Repeat the request."},
	{Code: OutcomeUnknown, Status: http.StatusServiceUnavailable, Title: "It is unknown whether the request was carried out",
		Meaning: "The database's answer was lost, so the service does not know whether the transaction was accepted. Repeat the request: the transaction is accepted once, however often it is sent."},
	{Code: internal, Status: http.StatusInternalServerError, Title: "The service failed",
		Meaning: "The service failed. The log says more under `requestId`."},
}

// Problem is an error answer by RFC 9457.
type Problem struct {
	Type      string `json:"type"` // a relative reference to the page of the code: see [Front.Problems]
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail,omitempty"`
	Code      string `json:"code"`
	Reason    string `json:"reason,omitempty"` // the chain.Fault of an invalid transaction
	Retryable bool   `json:"retryable,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	// Errors are the faults of the request, if they have places in it.
	Errors []Fault `json:"errors,omitempty"`
}

// Details for errors whose full text is only in the log.
const (
	unavailableDetail = "A required database cannot be reached. Nothing was changed; repeat the request."
	chainDetail       = "No node of the chain gave an answer that can be relied on. Nothing was changed; repeat the request."
	unknownDetail     = "The database's response was lost. Repeat the request: a transaction is accepted once, however often it is sent."
	internalDetail    = "The service's log has details under the request id."
)

// problem returns the problem for an error.
func (a *api) problem(err error) Problem {
	p := a.classified(err)
	p.Errors = faultsOf(err)
	return p
}

// classified returns the problem for an error, without its faults. It shows only the detail of a
// refusal: the text of other errors may contain internals.
func (a *api) classified(err error) Problem {
	var refusal eventlog.Refusal
	var refused *eventlog.Refused
	var malformed *chain.Malformed
	switch {
	case errors.As(err, &malformed):
		return malformedProblem(malformed)
	case errors.As(err, &refused):
		return filled(refused.Refusal, refused.Detail, a.more...)
	case errors.As(err, &refusal):
		return filled(refusal, "", a.more...)
	case errors.Is(err, commands.ErrChainAway):
		return filled(chainUnavailable, chainDetail)
	}
	for _, k := range a.more {
		if k.Of != nil && errors.Is(err, k.Of) {
			return filled(k.Code, k.Detail, a.more...)
		}
	}
	switch {
	case errors.Is(err, eventlog.ErrUnknown):
		return filled(OutcomeUnknown, unknownDetail)
	case isUnavailable(err), a.Transient != nil && a.Transient(err):
		return filled(unavailable, unavailableDetail)
	}
	return filled(internal, internalDetail)
}

func malformedProblem(m *chain.Malformed) Problem {
	code := invalidTransaction
	switch m.Fault {
	case chain.FaultWrongChain:
		code = wrongChain
	case chain.FaultTooLarge:
		code = txTooLarge
	}
	p := filled(code, m.Detail)
	p.Reason = string(m.Fault)
	return p
}

// filled returns the problem of a code, looked up in the table and then in more.
func filled(code eventlog.Refusal, detail string, more ...Kind) Problem {
	k, known := kindOf(code, more)
	if !known {
		return filled(internal, internalDetail)
	}
	return Problem{
		Type: strings.Replace(problemPath, "{code}", string(k.Code), 1), Title: k.Title, Status: k.Status, Detail: detail,
		Code: string(k.Code), Retryable: retryable(k.Status) || k.Code == ErrIdempotencyRunning,
	}
}

// kindOf returns the row of a code, looked up in the table and then in more.
func kindOf(code eventlog.Refusal, more []Kind) (Kind, bool) {
	for _, rows := range [][]Kind{kinds[:], more} {
		if i := slices.IndexFunc(rows, func(k Kind) bool { return k.Code == code }); i >= 0 {
			return rows[i], true
		}
	}
	return Kind{}, false
}

// retryable reports whether repeating the same request may succeed later.
func retryable(status int) bool {
	switch status {
	case http.StatusServiceUnavailable, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return false
}

// isUnavailable reports whether an error of any database means that the database is unreachable
// or too slow, so that nothing was changed and a retry may help.
func isUnavailable(err error) bool {
	for _, sign := range []error{
		eventlog.ErrClosed, context.DeadlineExceeded, context.Canceled,
		driver.ErrBadConn, sql.ErrConnDone, net.ErrClosed, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, sign) {
			return true
		}
	}
	var network net.Error
	return errors.As(err, &network)
}

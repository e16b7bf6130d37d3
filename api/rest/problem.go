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
	// Of, when set, is an error beside the refusal Code that is answered with this row. Detail is
	// its text for clients: the error's own text may contain internals.
	Of     error
	Detail string
}

// Kinds returns the rows for all APIs.
func Kinds() []Kind { return slices.Clone(kinds[:]) }

// kinds is the table. A [Front] adds the rows of its routes. An error without a row is internal.
var kinds = [...]Kind{
	{Code: ErrMalformedJSON, Status: http.StatusBadRequest, Title: "The body is not JSON"},
	{Code: ErrInvalidRequest, Status: http.StatusBadRequest, Title: "The request does not have the expected form"},
	{Code: ErrPayloadTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The body is too large"},
	{Code: ErrRequestTimeout, Status: http.StatusRequestTimeout, Title: "The body did not arrive in time"},
	{Code: ErrUnsupportedMediaType, Status: http.StatusUnsupportedMediaType, Title: "The body must be application/json"},
	{Code: ErrUnsupportedEncoding, Status: http.StatusUnsupportedMediaType, Title: "The body must not be compressed"},
	{Code: ErrEmptyBatch, Status: http.StatusBadRequest, Title: "The batch is empty"},
	{Code: ErrBatchTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The batch has too many transactions"},
	{Code: ErrInvalidAddress, Status: http.StatusBadRequest, Title: "This is not an address"},
	{Code: ErrInvalidFilter, Status: http.StatusBadRequest, Title: "A query parameter cannot be used like this"},
	{Code: ErrInvalidLimit, Status: http.StatusBadRequest, Title: "The limit is out of range"},
	{Code: ErrInvalidCursor, Status: http.StatusBadRequest, Title: "The cursor does not belong to this list"},
	{Code: ErrTooManyStreams, Status: http.StatusServiceUnavailable, Title: "Too many streams of events are open"},
	{Code: ErrNotFound, Status: http.StatusNotFound, Title: "There is no such path"},
	{Code: ErrMethodNotAllowed, Status: http.StatusMethodNotAllowed, Title: "The method is not allowed here"},
	{Code: ErrInvalidIdempotencyKey, Status: http.StatusBadRequest, Title: "The idempotency key cannot be used"},
	{Code: ErrIdempotencyConflict, Status: http.StatusUnprocessableEntity, Title: "The idempotency key belongs to another request"},
	{Code: access.ErrUnknownKey, Status: http.StatusNotFound, Title: "The API key is not known"},
	{Code: access.ErrInvalidKey, Status: http.StatusUnprocessableEntity, Title: "The API key cannot have these properties"},
	{Code: access.ErrTooManyKeys, Status: http.StatusConflict, Title: "There are too many API keys"},
	{Code: ErrIdempotencyRunning, Status: http.StatusConflict, Title: "The same request is being carried out"},
	{Code: ErrUnauthorized, Status: http.StatusUnauthorized, Title: "An API key is required"},
	{Code: ErrForbidden, Status: http.StatusForbidden, Title: "The API key lacks the scope for this"},
	{Code: ErrForeignSender, Status: http.StatusForbidden, Title: "The API key does not cover this sender"},
	{Code: webguard.ErrHost, Status: http.StatusForbidden, Title: "The service is not reachable under this name"},
	{Code: webguard.ErrOrigin, Status: http.StatusForbidden, Title: "Pages of this origin are not allowed"},
	{Code: ErrRateLimited, Status: http.StatusTooManyRequests, Title: "Too many requests"},
	{Code: access.ErrQuotaExceeded, Status: http.StatusTooManyRequests, Title: "A quota of the client is used up"},
	{Code: commands.ErrUnsupportedChain, Status: http.StatusUnprocessableEntity, Title: "The chain is not served here"},
	{Code: invalidTransaction, Status: http.StatusUnprocessableEntity, Title: "The transaction can never be valid"},
	{Code: wrongChain, Status: http.StatusUnprocessableEntity, Title: "The transaction is signed for another chain"},
	{Code: txTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The transaction is too large"},
	{Code: unavailable, Status: http.StatusServiceUnavailable, Title: "The service cannot do this now"},
	{Code: chainUnavailable, Status: http.StatusServiceUnavailable, Title: "The chain cannot be queried now"},
	{Code: OutcomeUnknown, Status: http.StatusServiceUnavailable, Title: "It is unknown whether the request was carried out"},
	{Code: internal, Status: http.StatusInternalServerError, Title: "The service failed"},
}

// Problem is an error answer by RFC 9457.
type Problem struct {
	Type      string `json:"type"` // a relative reference: /problems/ and the code
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail,omitempty"`
	Code      string `json:"code"`
	Reason    string `json:"reason,omitempty"` // the chain.Fault of an invalid transaction
	Retryable bool   `json:"retryable,omitempty"`
	RequestID string `json:"requestId,omitempty"`
}

// Details for errors whose full text is only in the log.
const (
	unavailableDetail = "A required database cannot be reached. Nothing was changed; repeat the request."
	chainDetail       = "No node of the chain gave an answer that can be relied on. Nothing was changed; repeat the request."
	unknownDetail     = "The database's response was lost. Repeat the request: a transaction is accepted once, however often it is sent."
	internalDetail    = "The service's log has details under the request id."
)

// problem returns the problem for an error. It shows only the detail of a refusal: the text of
// other errors may contain internals.
func (a *api) problem(err error) Problem {
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
	at := func(k Kind) bool { return k.Code == code }
	for _, rows := range [][]Kind{kinds[:], more} {
		if i := slices.IndexFunc(rows, at); i >= 0 {
			k := rows[i]
			return Problem{
				Type: "/problems/" + string(k.Code), Title: k.Title, Status: k.Status, Detail: detail,
				Code: string(k.Code), Retryable: retryable(k.Status) || k.Code == ErrIdempotencyRunning,
			}
		}
	}
	return filled(internal, internalDetail)
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

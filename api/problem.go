package api

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
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The API's own refusals. docs/reference/problems.md explains each to clients.
const (
	ErrMalformedJSON         = eventlog.Refusal("malformed-json")
	ErrInvalidRequest        = eventlog.Refusal("invalid-request")
	ErrPayloadTooLarge       = eventlog.Refusal("payload-too-large")
	ErrRequestTimeout        = eventlog.Refusal("request-timeout")
	ErrUnsupportedMediaType  = eventlog.Refusal("unsupported-media-type")
	ErrUnsupportedEncoding   = eventlog.Refusal("unsupported-encoding")
	ErrEmptyBatch            = eventlog.Refusal("empty-batch")
	ErrBatchTooLarge         = eventlog.Refusal("batch-too-large")
	ErrInvalidHash           = eventlog.Refusal("invalid-hash")
	ErrInvalidAddress        = eventlog.Refusal("invalid-address")
	ErrInvalidGroupID        = eventlog.Refusal("invalid-group-id")
	ErrInvalidFilter         = eventlog.Refusal("invalid-filter")
	ErrInvalidLimit          = eventlog.Refusal("invalid-limit")
	ErrInvalidCursor         = eventlog.Refusal("invalid-cursor")
	ErrAmbiguousChain        = eventlog.Refusal("ambiguous-chain")
	ErrSignatureRequired     = eventlog.Refusal("signature-required")
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
	catchingUp         = eventlog.Refusal("catching-up")
	unavailable        = eventlog.Refusal("unavailable")
	chainUnavailable   = eventlog.Refusal("chain-unavailable")
	cancelUnfinished   = eventlog.Refusal("cancel-unfinished")
	outcomeUnknown     = eventlog.Refusal("outcome-unknown")
	internal           = eventlog.Refusal("internal")
)

// A kind is one row of the table that maps errors to HTTP. Its code never changes, because
// client programs branch on it.
type kind struct {
	code   eventlog.Refusal
	status int
	title  string
}

// kinds is the table. An error without a row is internal.
var kinds = [...]kind{
	{ErrMalformedJSON, http.StatusBadRequest, "The body is not JSON"},
	{ErrInvalidRequest, http.StatusBadRequest, "The request does not have the expected form"},
	{ErrPayloadTooLarge, http.StatusRequestEntityTooLarge, "The body is too large"},
	{ErrRequestTimeout, http.StatusRequestTimeout, "The body did not arrive in time"},
	{ErrUnsupportedMediaType, http.StatusUnsupportedMediaType, "The body must be application/json"},
	{ErrUnsupportedEncoding, http.StatusUnsupportedMediaType, "The body must not be compressed"},
	{ErrEmptyBatch, http.StatusBadRequest, "The batch is empty"},
	{ErrBatchTooLarge, http.StatusRequestEntityTooLarge, "The batch has too many transactions"},
	{ErrInvalidHash, http.StatusBadRequest, "This is not a transaction hash"},
	{ErrInvalidAddress, http.StatusBadRequest, "This is not an address"},
	{ErrInvalidGroupID, http.StatusBadRequest, "This is not a group id"},
	{ErrInvalidFilter, http.StatusBadRequest, "A query parameter cannot be used like this"},
	{ErrInvalidLimit, http.StatusBadRequest, "The limit is out of range"},
	{ErrInvalidCursor, http.StatusBadRequest, "The cursor does not belong to this list"},
	{ErrAmbiguousChain, http.StatusBadRequest, "It exists on several chains: name one"},
	{canceler.ErrMalformed, http.StatusBadRequest, "This is not an owner's authorization"},
	{ErrSignatureRequired, http.StatusUnauthorized, "The owner's signature is required"},
	{canceler.ErrSignature, http.StatusUnauthorized, "The signature is invalid"},
	{group.ErrExpired, http.StatusUnauthorized, "The signature has expired"},
	{canceler.ErrNotOwner, http.StatusForbidden, "The signature is not the owner's"},
	{canceler.ErrFormOff, http.StatusForbidden, "This form of signature is not accepted here"},
	{group.ErrShownOften, http.StatusConflict, "Too many signatures have been shown for this group"},
	{group.ErrUnknown, http.StatusNotFound, "The group is not known"},
	{ErrTooManyStreams, http.StatusServiceUnavailable, "Too many streams of events are open"},
	{ErrNotFound, http.StatusNotFound, "There is no such path"},
	{ErrMethodNotAllowed, http.StatusMethodNotAllowed, "The method is not allowed here"},
	{ErrInvalidIdempotencyKey, http.StatusBadRequest, "The idempotency key cannot be used"},
	{ErrIdempotencyConflict, http.StatusUnprocessableEntity, "The idempotency key belongs to another request"},
	{access.ErrUnknownKey, http.StatusNotFound, "The API key is not known"},
	{access.ErrInvalidKey, http.StatusUnprocessableEntity, "The API key cannot have these properties"},
	{access.ErrTooManyKeys, http.StatusConflict, "There are too many API keys"},
	{ErrIdempotencyRunning, http.StatusConflict, "The same request is being carried out"},
	{ErrUnauthorized, http.StatusUnauthorized, "An API key is required"},
	{ErrForbidden, http.StatusForbidden, "The API key lacks the scope for this"},
	{ErrForeignSender, http.StatusForbidden, "The API key does not cover this sender"},
	{webguard.ErrHost, http.StatusForbidden, "The service is not reachable under this name"},
	{webguard.ErrOrigin, http.StatusForbidden, "Pages of this origin are not allowed"},
	{ErrRateLimited, http.StatusTooManyRequests, "Too many requests"},
	{access.ErrQuotaExceeded, http.StatusTooManyRequests, "A quota of the client is used up"},
	{tx.ErrUnknown, http.StatusNotFound, "The transaction is not known"},
	{tx.ErrNonceCurrent, http.StatusBadRequest, "The chain can still use this nonce"},
	{tx.ErrSettled, http.StatusConflict, "The transaction has ended already"},
	{tx.ErrAlreadyExpired, http.StatusUnprocessableEntity, "The transaction has expired already"},
	{tx.ErrTooFarAhead, http.StatusUnprocessableEntity, "The transaction may not be sent for too long"},
	{commands.ErrResubmission, http.StatusConflict, "The transaction takes no further client"},
	{commands.ErrUnsupportedChain, http.StatusUnprocessableEntity, "The chain is not served here"},
	{invalidTransaction, http.StatusUnprocessableEntity, "The transaction can never be valid"},
	{wrongChain, http.StatusUnprocessableEntity, "The transaction is signed for another chain"},
	{txTooLarge, http.StatusRequestEntityTooLarge, "The transaction is too large"},
	{catchingUp, http.StatusServiceUnavailable, "The read models are behind the log"},
	{unavailable, http.StatusServiceUnavailable, "The service cannot do this now"},
	{chainUnavailable, http.StatusServiceUnavailable, "The chain cannot be queried now"},
	{cancelUnfinished, http.StatusServiceUnavailable, "The cancel is recorded, but not carried out yet"},
	{outcomeUnknown, http.StatusServiceUnavailable, "It is unknown whether the request was carried out"},
	{internal, http.StatusInternalServerError, "The service failed"},
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
	unfinishedDetail  = "The cancel is recorded and will be carried out. Repeat the request to see the members' results."
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
	case errors.Is(err, canceler.ErrUnfinished):
		return filled(cancelUnfinished, unfinishedDetail)
	case errors.Is(err, eventlog.ErrUnknown):
		return filled(outcomeUnknown, unknownDetail)
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
func filled(code eventlog.Refusal, detail string, more ...kind) Problem {
	at := func(k kind) bool { return k.code == code }
	for _, rows := range [][]kind{kinds[:], more} {
		if i := slices.IndexFunc(rows, at); i >= 0 {
			k := rows[i]
			return Problem{
				Type: "/problems/" + string(k.code), Title: k.title, Status: k.status, Detail: detail,
				Code: string(k.code), Retryable: retryable(k.status) || k.code == ErrIdempotencyRunning,
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

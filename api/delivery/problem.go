package delivery

import (
	"net/http"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/delivery/canceler"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Refusals of delivery's routes. docs/reference/problems.md explains each to clients.
const (
	ErrInvalidHash       = eventlog.Refusal("invalid-hash")
	ErrInvalidGroupID    = eventlog.Refusal("invalid-group-id")
	ErrAmbiguousChain    = eventlog.Refusal("ambiguous-chain")
	ErrSignatureRequired = eventlog.Refusal("signature-required")
)

// Codes of errors that are not refusals, but are answered like one.
const (
	catchingUp       = eventlog.Refusal("catching-up")
	cancelUnfinished = eventlog.Refusal("cancel-unfinished")
)

const unfinishedDetail = "The cancel is recorded and will be carried out. Repeat the request to see the members' results."

// kinds are the rows that delivery adds to the table that maps refusals to HTTP.
func kinds() []rest.Kind {
	return []rest.Kind{
		{Code: ErrInvalidHash, Status: http.StatusBadRequest, Title: "This is not a transaction hash"},
		{Code: ErrInvalidGroupID, Status: http.StatusBadRequest, Title: "This is not a group id"},
		{Code: ErrAmbiguousChain, Status: http.StatusBadRequest, Title: "It exists on several chains: name one"},
		{Code: canceler.ErrMalformed, Status: http.StatusBadRequest, Title: "This is not an owner's authorization"},
		{Code: ErrSignatureRequired, Status: http.StatusUnauthorized, Title: "The owner's signature is required"},
		{Code: canceler.ErrSignature, Status: http.StatusUnauthorized, Title: "The signature is invalid"},
		{Code: group.ErrExpired, Status: http.StatusUnauthorized, Title: "The signature has expired"},
		{Code: canceler.ErrNotOwner, Status: http.StatusForbidden, Title: "The signature is not the owner's"},
		{Code: canceler.ErrFormOff, Status: http.StatusForbidden, Title: "This form of signature is not accepted here"},
		{Code: group.ErrShownOften, Status: http.StatusConflict, Title: "Too many signatures have been shown for this group"},
		{Code: group.ErrUnknown, Status: http.StatusNotFound, Title: "The group is not known"},
		{Code: tx.ErrUnknown, Status: http.StatusNotFound, Title: "The transaction is not known"},
		{Code: tx.ErrNonceCurrent, Status: http.StatusBadRequest, Title: "The chain can still use this nonce"},
		{Code: tx.ErrSettled, Status: http.StatusConflict, Title: "The transaction has ended already"},
		{Code: tx.ErrAlreadyExpired, Status: http.StatusUnprocessableEntity, Title: "The transaction has expired already"},
		{Code: tx.ErrTooFarAhead, Status: http.StatusUnprocessableEntity, Title: "The transaction may not be sent for too long"},
		{Code: commands.ErrResubmission, Status: http.StatusConflict, Title: "The transaction takes no further client"},
		{Code: catchingUp, Status: http.StatusServiceUnavailable, Title: "The read models are behind the log"},
		{
			Code: cancelUnfinished, Status: http.StatusServiceUnavailable, Title: "The cancel is recorded, but not carried out yet",
			Of: canceler.ErrUnfinished, Detail: unfinishedDetail,
		},
	}
}

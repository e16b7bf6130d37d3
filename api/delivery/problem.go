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
		{Code: ErrInvalidHash, Status: http.StatusBadRequest, Title: "This is not a transaction hash",
			Meaning: "The hash in the path is not `0x` and 64 hex digits."},
		{Code: ErrInvalidGroupID, Status: http.StatusBadRequest, Title: "This is not a group id",
			Meaning: "The group id in the path is not `0x` and 32 hex digits."},
		{Code: ErrAmbiguousChain, Status: http.StatusBadRequest, Title: "It exists on several chains: name one",
			Meaning: "The named transaction or group is on several chains. Name the chain with `chainId`."},
		{Code: canceler.ErrMalformed, Status: http.StatusBadRequest, Title: "This is not an owner's authorization",
			Meaning: "The authorization has a form that cannot prove the owner. It is not hex, has the length or type of no signature, or is an access key's signature. Or it has numbers out of range or a high s, holds two signatures, or expires more than 24 hours ahead."},
		{Code: ErrSignatureRequired, Status: http.StatusUnauthorized, Title: "The owner's signature is required",
			Meaning: "Only its owner can cancel a group; see cancel.md."},
		{Code: canceler.ErrSignature, Status: http.StatusUnauthorized, Title: "The signature is invalid",
			Meaning: "The key named in the signature did not sign this request. It signed another group, chain, deployment or expiry, or other data."},
		{Code: group.ErrExpired, Status: http.StatusUnauthorized, Title: "The signature has expired",
			Meaning: "`expires` has passed. Sign again with a later `expires`."},
		{Code: canceler.ErrNotOwner, Status: http.StatusForbidden, Title: "The signature is not the owner's",
			Meaning: "Another account signed this request; or a secp256k1 key signed other data, from which another account is recovered."},
		{Code: canceler.ErrFormOff, Status: http.StatusForbidden, Title: "This form of signature is not accepted here",
			Meaning: "Signatures over the group's id are not accepted here. Sign typed data."},
		{Code: group.ErrShownOften, Status: http.StatusConflict, Title: "Too many signatures have been shown for this group",
			Meaning: "The group remembers 256 signatures that have not expired yet. Wait until one expires."},
		{Code: group.ErrUnknown, Status: http.StatusNotFound, Title: "The group is not known",
			Meaning: "The sender has no group with this id (on this chain). A transaction that an access key signed is in no group until the chain has confirmed the key. A transaction that is accepted when its group is full is in no group. Or all members of the group belong to other clients."},
		{Code: tx.ErrUnknown, Status: http.StatusNotFound, Title: "The transaction is not known",
			Meaning: "No transaction with this hash was accepted (on this chain), it is past retention, or it belongs to other clients (security.md)."},
		{Code: tx.ErrNonceCurrent, Status: http.StatusBadRequest, Title: "The chain can still use this nonce",
			Meaning: "The chain still accepts this nonce, or waits for a lower nonce, so the transaction is not stale. `detail` names the chain's next nonce and the transaction's nonce."},
		{Code: tx.ErrSettled, Status: http.StatusConflict, Title: "The transaction has ended already",
			Meaning: "The transaction has ended in another way; `detail` says how."},
		{Code: tx.ErrAlreadyExpired, Status: http.StatusUnprocessableEntity, Title: "The transaction has expired already",
			Meaning: "`validBefore` has passed, and the transaction was not accepted before that."},
		{Code: tx.ErrTooFarAhead, Status: http.StatusUnprocessableEntity, Title: "The transaction may not be sent for too long",
			Meaning: "`validAfter` is further ahead than `max-valid-after` allows; `detail` names the limit. Submit the transaction later."},
		{Code: commands.ErrResubmission, Status: http.StatusConflict, Title: "The transaction takes no further client",
			Meaning: "Other clients submitted these bytes, and the transaction takes no further client: it has ended and is past retention, or 1,001 clients own it. Nothing was stored. The chain has its result. See security.md."},
		{Code: catchingUp, Status: http.StatusServiceUnavailable, Title: "The read models are behind the log",
			Meaning: "The read models are too far behind the log, after a restart or while they are rebuilt. Repeat the request."},
		{
			Code: cancelUnfinished, Status: http.StatusServiceUnavailable, Title: "The cancel is recorded, but not carried out yet",
			Meaning: "The cancel is recorded and will be carried out. Repeat the request to see the result for each member.",
			Of:      canceler.ErrUnfinished, Detail: unfinishedDetail,
		},
	}
}

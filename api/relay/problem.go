package relay

import (
	"net/http"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/relay/intake"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// ErrInvalidIntentID refuses a path without a valid intent id.
const ErrInvalidIntentID = eventlog.Refusal("invalid-intent-id")

// ErrForeignSigner refuses an intent for a signer or a pool that the API key may not use.
const ErrForeignSigner = eventlog.Refusal("foreign-signer")

// kinds are the rows that the relay adds to the table that maps refusals to HTTP. The API's own
// table has the rows for idempotency keys and for chains that are not served.
func kinds() []rest.Kind {
	return []rest.Kind{
		{Code: intent.ErrUnknown, Status: http.StatusNotFound, Title: "The intent is not known",
			Meaning: "There is no such intent, or it is another client's."},
		{Code: intent.ErrInvalid, Status: http.StatusUnprocessableEntity, Title: "The intent cannot have these properties",
			Meaning: "The request is invalid by itself: `detail` says why."},
		{Code: intent.ErrTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The intent is too large",
			Meaning: "Too many calls, or too much data, metadata or webhooks."},
		{Code: intent.ErrWebhookURL, Status: http.StatusUnprocessableEntity, Title: "The webhook cannot be called",
			Meaning: "The webhook cannot be called, or this relayer calls no webhooks (`webhooks.secrets-file`)."},
		{Code: intent.ErrTooFarAhead, Status: http.StatusUnprocessableEntity, Title: "The intent may not begin for too long",
			Meaning: "`notBefore` is further ahead than `max-valid-after` allows."},
		{Code: intent.ErrDeadlinePassed, Status: http.StatusUnprocessableEntity, Title: "The deadline has already passed",
			Meaning: "The deadline has already passed."},
		{Code: intent.ErrSettled, Status: http.StatusConflict, Title: "The intent has already ended",
			Meaning: "The intent has ended, and can no longer be changed."},
		{Code: intent.ErrCanceling, Status: http.StatusConflict, Title: "The intent is being canceled",
			Meaning: "The intent is being stopped, and cannot be sped up."},
		{Code: intent.ErrOverCeiling, Status: http.StatusUnprocessableEntity, Title: "The fee is above the intent's limit",
			Meaning: "The fee is above the intent's own `maxFeePerGas`, or above the part of `fee.ceiling` that intents may offer."},
		{Code: intent.ErrSmallRaise, Status: http.StatusUnprocessableEntity, Title: "The fee increase is too small",
			Meaning: "The fee is less than a tenth above the fee of the last speed-up; `detail` has the least fee."},
		{Code: intent.ErrSpeedUps, Status: http.StatusConflict, Title: "The intent was sped up too often",
			Meaning: "The intent was sped up 64 times."},
		{Code: safeguard.ErrHalted, Status: http.StatusServiceUnavailable, Title: "The relay accepts no intents now",
			Meaning: "A halt stops the acceptance of intents; `detail` has the halt and its reason."},
		{Code: safeguard.ErrTarget, Status: http.StatusForbidden, Title: "This target may not be called",
			Meaning: "No intent may call this."},
		{Code: budget.ErrSpent, Status: http.StatusTooManyRequests, Title: "Today's budget is spent",
			Meaning: "It fits into the budget, but not today. `detail` names only the used amounts of the client's and the subject's budgets: the amounts of a chain or a signer include other clients' intents."},
		{Code: budget.ErrOverLimit, Status: http.StatusUnprocessableEntity, Title: "The amount exceeds the budget's daily limit",
			Meaning: "It alone exceeds the budget of a day."},
		{Code: signer.ErrPool, Status: http.StatusUnprocessableEntity, Title: "The signer does not belong to the pool",
			Meaning: "The signer does not belong to the pool."},
		{Code: signer.ErrTarget, Status: http.StatusForbidden, Title: "The signer may not call this target",
			Meaning: "The signer may not call this target."},
		{Code: intake.ErrNotServed, Status: http.StatusUnprocessableEntity, Title: "No signer here can carry this out",
			Meaning: "No relayer here can ever carry it out: there is no such signer or pool, or the chain does not support the request."},
		{Code: notice.ErrEndpoint, Status: http.StatusNotFound, Title: "The webhook is not known",
			Meaning: "No event was ever to be sent to this webhook, or it is another client's."},
		{Code: notice.ErrDisabled, Status: http.StatusConflict, Title: "The webhook is disabled",
			Meaning: "The webhook is disabled: enable it first."},
		{Code: notice.ErrRedeliver, Status: http.StatusRequestEntityTooLarge, Title: "Too many webhook deliveries are named",
			Meaning: "More than 1000 deliveries are named. Name none to send all dead deliveries again."},
		{Code: ErrNoSigner, Status: http.StatusNotFound, Title: "There is no such signer",
			Meaning: "The address is no signer here, or no signer that the key may use."},
		{Code: lane.ErrUnknown, Status: http.StatusNotFound, Title: "There is no such lane",
			Meaning: "No relayer has ever opened this lane."},
		{Code: ErrNoDiagnosis, Status: http.StatusServiceUnavailable, Title: "The lane could not be examined",
			Meaning: "The lane could not be examined; the log has the cause."},
		{Code: ErrInvalidWebhookID, Status: http.StatusBadRequest, Title: "This is not the id of a webhook",
			Meaning: "The id in the path is not 32 hex digits in lower case."},
		{Code: ErrForeignSigner, Status: http.StatusForbidden, Title: "The API key does not cover this signer or pool",
			Meaning: "The API key was created with `--signers` or `--pools`, and names neither this signer nor this pool."},
		{Code: ErrInvalidIntentID, Status: http.StatusBadRequest, Title: "This is not the id of an intent",
			Meaning: "The id in the path is not `0x` and 32 hex digits."},
	}
}

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

// kinds are the rows that the relay adds to the table that maps refusals to HTTP. The API's own
// table has the rows for idempotency keys and for chains that are not served.
func kinds() []rest.Kind {
	return []rest.Kind{
		{Code: intent.ErrUnknown, Status: http.StatusNotFound, Title: "The intent is not known"},
		{Code: intent.ErrInvalid, Status: http.StatusUnprocessableEntity, Title: "The intent cannot have these properties"},
		{Code: intent.ErrTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The intent is too large"},
		{Code: intent.ErrWebhookURL, Status: http.StatusUnprocessableEntity, Title: "The webhook cannot be called"},
		{Code: intent.ErrDeadlinePassed, Status: http.StatusUnprocessableEntity, Title: "The deadline has already passed"},
		{Code: intent.ErrSettled, Status: http.StatusConflict, Title: "The intent has already ended"},
		{Code: intent.ErrCanceling, Status: http.StatusConflict, Title: "The intent is being canceled"},
		{Code: intent.ErrOverCeiling, Status: http.StatusUnprocessableEntity, Title: "The fee is above the intent's limit"},
		{Code: intent.ErrSmallRaise, Status: http.StatusUnprocessableEntity, Title: "The fee increase is too small"},
		{Code: intent.ErrSpeedUps, Status: http.StatusConflict, Title: "The intent was sped up too often"},
		{Code: safeguard.ErrHalted, Status: http.StatusServiceUnavailable, Title: "The relay accepts no intents now"},
		{Code: safeguard.ErrTarget, Status: http.StatusForbidden, Title: "This target may not be called"},
		{Code: budget.ErrSpent, Status: http.StatusTooManyRequests, Title: "Today's budget is spent"},
		{Code: budget.ErrOverLimit, Status: http.StatusUnprocessableEntity, Title: "The amount exceeds the budget's daily limit"},
		{Code: signer.ErrPool, Status: http.StatusUnprocessableEntity, Title: "The signer does not belong to the pool"},
		{Code: signer.ErrTarget, Status: http.StatusForbidden, Title: "The signer may not call this target"},
		{Code: intake.ErrNotServed, Status: http.StatusUnprocessableEntity, Title: "No signer here can carry this out"},
		{Code: notice.ErrEndpoint, Status: http.StatusNotFound, Title: "The webhook is not known"},
		{Code: notice.ErrDisabled, Status: http.StatusConflict, Title: "The webhook is disabled"},
		{Code: notice.ErrRedeliver, Status: http.StatusRequestEntityTooLarge, Title: "Too many webhook deliveries are named"},
		{Code: ErrNoSigner, Status: http.StatusNotFound, Title: "There is no such signer"},
		{Code: lane.ErrUnknown, Status: http.StatusNotFound, Title: "There is no such lane"},
		{Code: ErrNoDiagnosis, Status: http.StatusServiceUnavailable, Title: "The lane could not be examined"},
		{Code: ErrInvalidWebhookID, Status: http.StatusBadRequest, Title: "This is not the id of a webhook"},
		{Code: ErrInvalidIntentID, Status: http.StatusBadRequest, Title: "This is not the id of an intent"},
	}
}

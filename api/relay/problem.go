package relay

import (
	"net/http"

	"github.com/tempo-watchtower/watchtower/api"
	"github.com/tempo-watchtower/watchtower/commands/intake"
	"github.com/tempo-watchtower/watchtower/domain/budget"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/domain/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/signer"
)

// ErrInvalidIntentID refuses a path without a valid intent id.
const ErrInvalidIntentID = event.Refusal("invalid-intent-id")

// kinds are the rows that the relay adds to the table that maps refusals to HTTP. The API's own
// table has the rows for idempotency keys and for chains that are not served.
func kinds() []api.Kind {
	return []api.Kind{
		{Code: intent.ErrUnknown, Status: http.StatusNotFound, Title: "The intent is not known"},
		{Code: intent.ErrInvalid, Status: http.StatusUnprocessableEntity, Title: "There cannot be such an intent"},
		{Code: intent.ErrTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The intent is too large"},
		{Code: intent.ErrWebhookURL, Status: http.StatusUnprocessableEntity, Title: "The webhook cannot be called"},
		{Code: intent.ErrDeadlinePassed, Status: http.StatusUnprocessableEntity, Title: "The deadline is over already"},
		{Code: intent.ErrSettled, Status: http.StatusConflict, Title: "The intent has come out already"},
		{Code: intent.ErrCanceling, Status: http.StatusConflict, Title: "The intent is being canceled"},
		{Code: intent.ErrOverCeiling, Status: http.StatusUnprocessableEntity, Title: "The intent may not pay so much"},
		{Code: intent.ErrSmallRaise, Status: http.StatusUnprocessableEntity, Title: "The fee is raised by too little"},
		{Code: intent.ErrSpeedUps, Status: http.StatusConflict, Title: "The intent was sped up too often"},
		{Code: safeguard.ErrHalted, Status: http.StatusServiceUnavailable, Title: "Nothing is taken on now"},
		{Code: safeguard.ErrTarget, Status: http.StatusForbidden, Title: "This may not be called"},
		{Code: budget.ErrSpent, Status: http.StatusTooManyRequests, Title: "Today's budget is spent"},
		{Code: budget.ErrOverLimit, Status: http.StatusUnprocessableEntity, Title: "More than the budget ever allows"},
		{Code: signer.ErrPool, Status: http.StatusUnprocessableEntity, Title: "The signer is not one of the pool"},
		{Code: signer.ErrTarget, Status: http.StatusForbidden, Title: "The signer may not call this"},
		{Code: intake.ErrNotServed, Status: http.StatusUnprocessableEntity, Title: "Nobody here would carry this out"},
		{Code: notice.ErrEndpoint, Status: http.StatusNotFound, Title: "The webhook is not known"},
		{Code: notice.ErrDisabled, Status: http.StatusConflict, Title: "The webhook is disabled"},
		{Code: notice.ErrRedeliver, Status: http.StatusRequestEntityTooLarge, Title: "Too many notices are named"},
		{Code: ErrInvalidWebhookID, Status: http.StatusBadRequest, Title: "This is not the id of a webhook"},
		{Code: ErrInvalidIntentID, Status: http.StatusBadRequest, Title: "This is not the id of an intent"},
	}
}

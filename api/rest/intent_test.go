package rest

import (
	"net/http"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The refusals of an intent's idempotency key have the same statuses as those for other
// requests.
func TestIdempotencyOfIntents(t *testing.T) {
	for code, want := range map[eventlog.Refusal]int{
		intent.ErrDiffers:    http.StatusUnprocessableEntity,
		intent.ErrInvalidKey: http.StatusBadRequest,
	} {
		if p := filled(code, ""); p.Status != want || p.Code != string(code) {
			t.Errorf("%s is answered with %d %s, want %d", code, p.Status, p.Code, want)
		}
	}
	if ErrIdempotencyConflict != intent.ErrDiffers || ErrInvalidIdempotencyKey != intent.ErrInvalidKey {
		t.Error("there are two codes for one thing")
	}
}

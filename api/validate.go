package api

import (
	"net/http"

	"github.com/tempo-watchtower/watchtower/commands"
)

// validated is the result for a transaction that was only validated: submitting it would have
// been accepted.
type validated struct {
	taken
	// Status is empty unless the transaction was accepted earlier.
	Status       string `json:"status,omitempty"`
	ValidateOnly bool   `json:"validateOnly"` // always true
}

// validateOnly reads whether a request only validates its transactions.
func (p parameters) validateOnly() (bool, error) {
	switch {
	case !p.values.Has("validate"):
		return false, nil
	case p.one("validate") != "only":
		return false, ErrInvalidFilter.Because("validate must be only, not %s", quote(p.one("validate")))
	case p.values.Has("wait"):
		return false, ErrInvalidFilter.Because("wait cannot be used with validate=only")
	}
	return true, nil
}

// answerValidation answers item by item, like a submission.
func (a *api) answerValidation(w http.ResponseWriter, on *exchange, all []commands.Submission) error {
	out := results{make([]any, len(all))}
	for i, s := range all {
		if s.Err != nil {
			p := a.problem(s.Err)
			p.RequestID = on.id
			out.Results[i] = refused{Problem: p}
			continue
		}
		out.Results[i] = validated{taken: takenOf(s, nil), Status: string(s.State.Status), ValidateOnly: true}
	}
	return reply(w, http.StatusOK, out)
}

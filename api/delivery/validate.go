package delivery

import (
	"net/http"

	"github.com/tempo-watchtower/watchtower/api/rest"
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
		return false, rest.BadParameter("validate", "validate must be only, not %s", rest.Quote(p.one("validate")))
	case p.values.Has("wait"):
		return false, rest.BadParameter("wait", "wait cannot be used with validate=only")
	}
	return true, nil
}

// answerValidation answers item by item, like a submission.
func (a *api) answerValidation(r rest.Request, all []commands.Submission) error {
	out := results{make([]any, len(all))}
	for i, s := range all {
		if s.Err != nil {
			out.Results[i] = refused{Problem: r.ProblemUnlogged(s.Err)}
			continue
		}
		out.Results[i] = validated{taken: takenOf(s, nil), Status: string(s.State.Status), ValidateOnly: true}
	}
	return r.Reply(http.StatusOK, out)
}

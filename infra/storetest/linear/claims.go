package linear

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tempo-watchtower/watchtower/domain/request"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Ask is one call about a request that clients may repeat.
type Ask struct {
	Kind   AskKind
	Name   request.Name
	Print  request.Print
	Claim  eventlog.ID
	Answer string // the answer to store
}

// AskKind is the kind of a call.
type AskKind string

// The kinds of calls.
const (
	ToClaim   AskKind = "claim"
	ToAnswer  AskKind = "answer"
	ToRelease AskKind = "release"
)

// Told is a call's result. Answer is the stored answer, if the stage is Answered.
type Told struct {
	Stage  request.Stage
	Answer string
	Err    error
}

// Claims is a history of requests that clients may repeat. While it is made, claims must not
// lapse, and requests must not be forgotten.
type Claims struct{ *History[Ask, Told] }

// NewClaims makes an empty history.
func NewClaims() Claims { return Claims{NewHistory[Ask, Told](time.Now)} }

// Stage counts the claims that returned a stage.
func (c Claims) Stage(s request.Stage) int {
	return c.told(func(a Ask, t Told) bool { return a.Kind == ToClaim && t.Err == nil && t.Stage == s })
}

// Judge checks the history against requests handled one after the other.
func (c Claims) Judge() Verdict {
	return search(claimModel(), operations(c.sorted()), "the requests")
}

// claimed is the modelled state of a request; the zero claimed was never made.
type claimed struct {
	there    bool
	print    request.Print
	claim    eventlog.ID
	answered bool
	answer   string
}

func claimModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			return partition(all, func(o porcupine.Operation) request.Name { return o.Input.(call[Ask, Told]).in.Name })
		},
		Init: func() []any { return []any{claimed{}} },
		Step: func(state, input, output any) []any {
			s, in, out := state.(claimed), input.(call[Ask, Told]).in, output.(Told)
			after, told := s.step(in)
			switch {
			case out.Err != nil:
				return []any{s, after}
			case out != told:
				return nil
			}
			return []any{after}
		},
		DescribeOperation: func(input, output any) string {
			return describeAsk(input.(call[Ask, Told]).in, output.(Told))
		},
		DescribeState: func(state any) string {
			s := state.(claimed)
			return fmt.Sprintf("print %x claim %x answered %v %s", s.print[:2], s.claim[:2], s.answered, s.answer)
		},
	}
	return m.ToModel()
}

// step applies one call to the modelled request.
func (s claimed) step(in Ask) (claimed, Told) {
	ours := s.there && s.claim == in.Claim
	switch in.Kind {
	case ToAnswer:
		if ours {
			s.answered, s.answer = true, in.Answer
		}
		return s, Told{}
	case ToRelease:
		if ours {
			s = claimed{}
		}
		return s, Told{}
	}
	switch {
	case !s.there, ours: // ours: retried after its answer was lost
		return claimed{there: true, print: in.Print, claim: in.Claim}, Told{Stage: request.Claimed}
	case s.print != in.Print:
		return s, Told{Stage: request.Differs}
	case s.answered:
		return s, Told{Stage: request.Answered, Answer: s.answer}
	}
	return s, Told{Stage: request.Running}
}

func describeAsk(in Ask, out Told) string {
	text := fmt.Sprintf("%s print %x by %x", in.Kind, in.Print[:2], in.Claim[:2])
	switch {
	case out.Err != nil:
		return text + ": " + out.Err.Error()
	case in.Kind == ToAnswer:
		return text + ": " + in.Answer
	case in.Kind == ToClaim:
		return fmt.Sprintf("%s: stage %d %s", text, out.Stage, out.Answer)
	}
	return text
}

package linear

import (
	"cmp"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Submit asks the service to accept a transaction, perhaps under an Idempotency-Key.
type Submit struct {
	Hash chain.Hash
	Key  string // empty: none
	Body string // distinguishes requests under one key
}

// Submitted is the service's answer.
type Submitted struct {
	Kind   SubmittedKind
	Known  bool   // the transaction had been accepted before
	Answer string // the whole body
}

// SubmittedKind is how a request ended.
type SubmittedKind string

// The kinds of answers.
const (
	Carried  SubmittedKind = "carried out"
	Replayed SubmittedKind = "answered again"
	Running  SubmittedKind = "running"
	Differs  SubmittedKind = "differs"
	Lost     SubmittedKind = "lost" // outcome unknown
)

// Submits is a history of requests to the service, over any number of replicas. While it is
// made, claims must not lapse, and requests must not be forgotten.
type Submits struct{ *History[Submit, Submitted] }

// NewSubmits makes an empty history.
func NewSubmits() Submits { return Submits{NewHistory[Submit, Submitted](time.Now)} }

// Answers counts the answers of a kind.
func (s Submits) Answers(k SubmittedKind) int {
	return s.told(func(_ Submit, o Submitted) bool { return o.Kind == k })
}

// JudgeHashes checks the history against transactions that are accepted once: one request
// returns that it is new, and all later requests that it is known.
func (s Submits) JudgeHashes() Verdict {
	model := porcupine.Model{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			return partition(all, func(o porcupine.Operation) chain.Hash { return o.Input.(call[Submit, Submitted]).in.Hash })
		},
		Init: func() any { return false },
		Step: func(state, _, output any) (bool, any) {
			accepted := state.(bool)
			switch out := output.(Submitted); out.Kind {
			case Carried:
				return out.Known == accepted, true
			case Replayed:
				return accepted, true
			case Lost:
				return true, true
			}
			return true, accepted
		},
		DescribeOperation: func(input, output any) string {
			return describeSubmit(input.(call[Submit, Submitted]).in, output.(Submitted))
		},
	}
	return search(model, operations(s.sorted()), "the transactions")
}

// half is one of the two moments of a request under a key: it claims the key, and it leaves an
// answer. Between them other requests are told that it runs.
type half struct {
	call[Submit, Submitted]
	request int
	leaves  bool
}

// JudgeKeys checks the history against keys under which a request is carried out once.
func (s Submits) JudgeKeys() Verdict {
	var calls []call[Submit, Submitted]
	for _, c := range s.sorted() {
		if c.in.Key != "" {
			calls = append(calls, c)
		}
	}
	var all []porcupine.Operation
	for i, o := range operations(calls) {
		h := half{call: calls[i], request: i + 1}
		o.Input = h
		all = append(all, o)
		if kind := h.out.Kind; kind == Carried || kind == Lost {
			h.leaves = true
			o.Input, o.ClientId = h, o.ClientId+leavers
			all = append(all, o)
		}
	}
	return search(keyModel(), all, "the keys")
}

// leavers offsets the client ids of second halves, so that pictures show them on lines of their
// own.
const leavers = 100_000

// keyed is the modelled state of a key; the zero keyed was never used.
type keyed struct {
	by       int // number of the request that claimed it; 0: none
	body     string
	answered bool
	answer   string // empty until a request has returned it
	lapsed   bool   // it left no answer: only the same request may be carried out again
}

func keyModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			return partition(all, func(o porcupine.Operation) string { return o.Input.(half).in.Key })
		},
		Init: func() []any { return []any{keyed{}} },
		Step: func(state, input, output any) []any {
			var all []any
			for _, next := range state.(keyed).step(input.(half), output.(Submitted)) {
				all = append(all, next)
			}
			return all
		},
		DescribeOperation: func(input, output any) string {
			h := input.(half)
			if h.leaves {
				return fmt.Sprintf("%d leaves its answer", h.request)
			}
			return fmt.Sprintf("%d: %s", h.request, describeSubmit(h.in, output.(Submitted)))
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
	}
	return m.ToModel()
}

// step returns the possible states of a key after half a request with this answer; none if the
// answer is impossible.
func (s keyed) step(h half, out Submitted) []keyed {
	fresh, ours := s.by == 0, s.by == h.request
	if h.leaves {
		switch left := (keyed{by: h.request, body: h.in.Body, answered: true, answer: out.Answer}); {
		case out.Kind == Lost && ours: // it left its answer, left none, or is still running
			return []keyed{s, left, {by: h.request, body: h.in.Body, lapsed: true}}
		case out.Kind == Lost:
			return []keyed{s}
		case ours && !s.answered:
			return []keyed{left}
		}
		return nil
	}
	switch out.Kind {
	case Carried, Lost:
		claimed := keyed{by: h.request, body: h.in.Body}
		free := fresh || s.lapsed && s.body == h.in.Body
		switch {
		case out.Kind == Lost && free:
			return []keyed{s, claimed}
		case out.Kind == Lost:
			return []keyed{s}
		case free:
			return []keyed{claimed}
		}
	case Running:
		if !fresh && !s.answered && !s.lapsed && s.body == h.in.Body {
			return []keyed{s}
		}
	case Differs:
		if !fresh && s.body != h.in.Body {
			return []keyed{s}
		}
	case Replayed:
		if s.answered && s.body == h.in.Body && cmp.Or(s.answer, out.Answer) == out.Answer {
			s.answer = out.Answer
			return []keyed{s}
		}
	}
	return nil
}

func describeSubmit(in Submit, out Submitted) string {
	text := fmt.Sprintf("submit %x", in.Hash[:2])
	if in.Key != "" {
		text += fmt.Sprintf(" (%s) under %s", in.Body, in.Key)
	}
	if text += ": " + string(out.Kind); out.Kind == Carried {
		text += fmt.Sprintf(", known %v", out.Known)
	}
	return text
}

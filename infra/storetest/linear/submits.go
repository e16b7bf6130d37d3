package linear

import (
	"cmp"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Submit asks the service to take a transaction on, perhaps under an Idempotency-Key.
type Submit struct {
	Hash chain.Hash
	Key  string // empty: none was given
	Body string // tells requests under one key apart
}

// Submitted is what the service answered.
type Submitted struct {
	Kind   SubmittedKind
	Known  bool   // the transaction had been accepted before
	Answer string // the whole of it
}

// SubmittedKind is how a request ended.
type SubmittedKind string

// The kinds of answers.
const (
	Carried  SubmittedKind = "carried out"
	Replayed SubmittedKind = "answered again"
	Running  SubmittedKind = "running"
	Differs  SubmittedKind = "differs"
	Lost     SubmittedKind = "lost" // nobody knows
)

// Submits is a history of requests to the service, over any number of replicas. Claims
// must not lapse, and requests must not be forgotten, while it is made.
type Submits struct{ *History[Submit, Submitted] }

// NewSubmits makes an empty history.
func NewSubmits() Submits { return Submits{NewHistory[Submit, Submitted](time.Now)} }

// Answers counts the answers of a kind.
func (s Submits) Answers(k SubmittedKind) int {
	return s.told(func(_ Submit, o Submitted) bool { return o.Kind == k })
}

// JudgeHashes holds the history against transactions that are accepted once: one request
// is told so, all that follow that it is known.
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

// half is one of the two moments of a request under a key: it claims the key, and it
// leaves an answer. Between them others are told that it runs.
type half struct {
	call[Submit, Submitted]
	request int
	leaves  bool
}

// JudgeKeys holds the history against keys under which a request is carried out once.
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

// leavers keeps the pictures' lines of second halves apart from those of first ones.
const leavers = 100_000

// keyed is what is known of a key; the zero keyed is one that nobody used.
type keyed struct {
	by       int // the request that claimed it
	body     string
	answered bool
	answer   string // empty while nobody was told
	lapsed   bool   // it left no answer: the same is carried out again, and nothing else
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

// step is what a key may be after half a request that was answered so; nothing when it
// cannot have been.
func (s keyed) step(h half, out Submitted) []keyed {
	fresh, ours := s.by == 0, s.by == h.request
	if h.leaves {
		switch left := (keyed{by: h.request, body: h.in.Body, answered: true, answer: out.Answer}); {
		case out.Kind == Lost && ours: // kept, or without an answer, or not yet
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

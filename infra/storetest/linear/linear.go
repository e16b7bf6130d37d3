// Package linear judges histories: what clients asked of a store at the same time, and
// what they were told. A history is linearizable when everything asked can be put in one
// order, in which each call lies between its beginning and its end, and in which a store
// that does one thing after the other would have told the same (Herlihy and Wing, 1990).
// The search is porcupine's; the models of what such a store does are here.
//
// A call whose outcome nobody knows may have happened: at any time after it began, or
// never. It has no end.
package linear

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// call is something a client asked, and what it was told.
type call[I, O any] struct {
	client       int
	began, ended time.Duration
	in           I
	out          O
	open         bool // nobody knows whether it happened, or will
}

// History is what several clients asked and were told. Its methods may be called at
// the same time. The zero History is not usable; make one with [NewHistory].
type History[I, O any] struct {
	now   func() time.Time
	since time.Time
	mu    sync.Mutex
	calls []call[I, O]
}

// NewHistory makes an empty history, timed by a clock that never goes back.
func NewHistory[I, O any](now func() time.Time) *History[I, O] {
	return &History[I, O]{now: now, since: now()}
}

// Do carries a call out and keeps what it was told. known is false when nobody can say
// whether it took effect. One client makes one call at a time, unless its outcome is
// not known.
func (h *History[I, O]) Do(client int, in I, carryOut func() (out O, known bool)) O {
	began := h.now().Sub(h.since)
	out, known := carryOut()
	ended := h.now().Sub(h.since)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call[I, O]{client, began, ended, in, out, !known})
	return out
}

// Len is how many calls there are, and how many of them have an unknown outcome.
func (h *History[I, O]) Len() (all, open int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if c.open {
			open++
		}
	}
	return len(h.calls), open
}

// told counts the calls that were answered in a way.
func (h *History[I, O]) told(is func(I, O) bool) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if is(c.in, c.out) {
			n++
		}
	}
	return n
}

// sorted is all calls by their beginning.
func (h *History[I, O]) sorted() []call[I, O] {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.calls)
	slices.SortStableFunc(all, func(a, b call[I, O]) int { return int(a.began - b.began) })
	return all
}

// operations are the calls as porcupine wants them: what is open ends after all others,
// and so may come last, where nobody sees what it did.
func operations[I, O any](calls []call[I, O]) []porcupine.Operation {
	var end time.Duration
	clients := 0
	for _, c := range calls {
		end, clients = max(end, c.ended), max(clients, c.client+1)
	}
	all := make([]porcupine.Operation, len(calls))
	for i, c := range calls {
		if c.open { // and its client goes on meanwhile: a picture needs a line for each
			c.client, c.ended = clients, end+1
			clients++
		}
		all[i] = porcupine.Operation{ClientId: c.client, Input: c, Call: int64(c.began), Output: c.out, Return: int64(c.ended)}
	}
	return all
}

// Verdict is what came of judging a history.
type Verdict struct {
	// Wrong says why the history is not linearizable, or could not be judged in time;
	// empty when all is well.
	Wrong string
	// Undecided is set when the search took too long.
	Undecided bool

	model porcupine.Model
	info  porcupine.LinearizationInfo
}

// patience bounds one search. A history that takes longer is too long or has too many
// calls without an outcome.
const patience = time.Minute

func search(model porcupine.Model, all []porcupine.Operation, what string) Verdict {
	result, info := porcupine.CheckOperationsVerbose(model, all, patience)
	v := Verdict{model: model, info: info}
	switch result {
	case porcupine.Illegal:
		v.Wrong = fmt.Sprintf("no order of the %d calls explains what %s told", len(all), what)
	case porcupine.Unknown:
		v.Wrong = fmt.Sprintf("the %d calls could not be judged in %s", len(all), patience)
		v.Undecided = true
	}
	return v
}

// Draw writes a page that shows the history and how far an order was found.
func (v Verdict) Draw(w io.Writer) error {
	if v.info.PartialLinearizations() == nil {
		_, err := fmt.Fprintln(w, v.Wrong)
		return err
	}
	return porcupine.Visualize(v.model, v.info, w)
}

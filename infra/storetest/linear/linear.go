// Package linear judges histories: concurrent calls of clients to a store, and their results. A
// history is linearizable if all calls can be put in one order, with each call between its
// beginning and its end, and a store that runs one call after the other would return the same
// results (Herlihy and Wing, 1990). The search is porcupine's. This package holds the models of
// such stores.
//
// A call with an unknown outcome may have taken effect at any time after it began, or never. It
// has no end.
package linear

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// call is a client's call and its result.
type call[I, O any] struct {
	client       int
	began, ended time.Duration
	in           I
	out          O
	open         bool // its outcome is unknown, and it may still take effect
}

// History is the calls of several clients and their results. Its methods may be called
// concurrently. The zero History is not usable; make one with [NewHistory].
type History[I, O any] struct {
	now   func() time.Time
	since time.Time
	mu    sync.Mutex
	calls []call[I, O]
}

// NewHistory makes an empty history, timed by a monotonic clock.
func NewHistory[I, O any](now func() time.Time) *History[I, O] {
	return &History[I, O]{now: now, since: now()}
}

// Do carries a call out and records its result. known is false if it is unknown whether the
// call took effect. A client makes one call at a time, unless its outcome is unknown.
func (h *History[I, O]) Do(client int, in I, carryOut func() (out O, known bool)) O {
	began := h.now().Sub(h.since)
	out, known := carryOut()
	ended := h.now().Sub(h.since)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call[I, O]{client, began, ended, in, out, !known})
	return out
}

// Len returns the number of calls, and of calls with an unknown outcome.
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

// told counts the calls whose result satisfies is.
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

// sorted returns all calls by their beginning.
func (h *History[I, O]) sorted() []call[I, O] {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.calls)
	slices.SortStableFunc(all, func(a, b call[I, O]) int { return int(a.began - b.began) })
	return all
}

// operations converts calls for porcupine. An open call ends after all others, and so may take
// effect last, after every read.
func operations[I, O any](calls []call[I, O]) []porcupine.Operation {
	var end time.Duration
	clients := 0
	for _, c := range calls {
		end, clients = max(end, c.ended), max(clients, c.client+1)
	}
	all := make([]porcupine.Operation, len(calls))
	for i, c := range calls {
		if c.open { // its client makes further calls meanwhile: a picture needs a line for each
			c.client, c.ended = clients, end+1
			clients++
		}
		all[i] = porcupine.Operation{ClientId: c.client, Input: c, Call: int64(c.began), Output: c.out, Return: int64(c.ended)}
	}
	return all
}

// Verdict is the result of judging a history.
type Verdict struct {
	// Wrong says why the history is not linearizable, or could not be judged in time; empty if
	// it is linearizable.
	Wrong string
	// Undecided is set when the search took too long.
	Undecided bool

	model porcupine.Model
	info  porcupine.LinearizationInfo
}

// patience bounds one search. A history that takes longer is too long, or has too many calls
// with an unknown outcome.
const patience = time.Minute

func search(model porcupine.Model, all []porcupine.Operation, what string) Verdict {
	result, info := porcupine.CheckOperationsVerbose(model, all, patience)
	v := Verdict{model: model, info: info}
	switch result {
	case porcupine.Illegal:
		v.Wrong = fmt.Sprintf("no order of the %d calls explains the results of %s", len(all), what)
	case porcupine.Unknown:
		v.Wrong = fmt.Sprintf("the %d calls could not be judged in %s", len(all), patience)
		v.Undecided = true
	}
	return v
}

// Draw writes a page that shows the history and the longest order found.
func (v Verdict) Draw(w io.Writer) error {
	if v.info.PartialLinearizations() == nil {
		_, err := fmt.Fprintln(w, v.Wrong)
		return err
	}
	return porcupine.Visualize(v.model, v.info, w)
}

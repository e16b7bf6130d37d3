package promise

import (
	"bytes"
	"iter"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Drift is how far two tables are apart.
type Drift struct {
	Rows      uint64 `json:"rows"`      // that should be there
	Missing   uint64 `json:"missing"`   // should be there and are not
	Extra     uint64 `json:"extra"`     // are there and should not be
	Different uint64 `json:"different"` // are other than they should be
	// First are the first differences, at most [DriftMax].
	First []Difference `json:"first,omitempty"`
}

// DriftMax bounds how many differences are told one by one.
const DriftMax = 20

// Difference is a row that is not what it should be.
type Difference struct {
	Key       string `json:"key"`
	Want, Got []byte `json:",omitempty"` // nil: no such row
}

// Total is how many rows are not what they should be.
func (d Drift) Total() uint64 { return d.Missing + d.Extra + d.Different }

// Compare is P18 and P19: it holds a table against what it should be, row by row. Both
// come in the order of their keys, in a form that is the same for equal rows.
func Compare(want, got iter.Seq2[string, []byte]) Drift {
	var d Drift
	next, stop := iter.Pull2(got)
	defer stop()
	differs := func(count *uint64, key string, want, got []byte) {
		*count++
		if len(d.First) < DriftMax {
			d.First = append(d.First, Difference{key, bytes.Clone(want), bytes.Clone(got)})
		}
	}
	there, row, more := next()
	for key, should := range want {
		d.Rows++
		for more && there < key {
			differs(&d.Extra, there, nil, row)
			there, row, more = next()
		}
		switch {
		case !more || there > key:
			differs(&d.Missing, key, should, nil)
			continue
		case !bytes.Equal(should, row):
			differs(&d.Different, key, should, row)
		}
		there, row, more = next()
	}
	for more {
		differs(&d.Extra, there, nil, row)
		there, row, more = next()
	}
	return d
}

// Reader is P20 for one reader of the log, such as a projection or a client that
// follows events: it is shown what passes its filter, each event once, in order.
type Reader struct {
	Name   string
	Filter event.Filter
	due    []event.Recorded // recorded, and not shown yet; without their data
}

// Event says what the log holds next.
func (r *Reader) Event(e event.Recorded) {
	if r.Filter.Passes(e.Stream, e.Name) {
		e.Data = nil
		r.due = append(r.due, e)
	}
}

// Shown judges what the reader was shown next.
func (r *Reader) Shown(e event.Recorded) []Violation {
	for i, d := range r.due {
		if d.Position != e.Position {
			continue
		}
		var found []Violation
		for _, skipped := range r.due[:i] {
			found = append(found, Violation{P20, skipped.Stream, skipped.Position, r.Name + " was not shown " + skipped.Name})
		}
		r.due = r.due[i+1:]
		return found
	}
	return []Violation{{P20, e.Stream, e.Position, r.Name + " was shown " + e.Name + ", which it had been shown before, or which is not for it"}}
}

// Finish judges a reader that has come to the end of the log.
func (r *Reader) Finish() []Violation {
	var found []Violation
	for _, d := range r.due {
		found = append(found, Violation{P20, d.Stream, d.Position, r.Name + " was not shown " + d.Name})
	}
	return found
}

package promises

import (
	"bytes"
	"iter"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Drift is the difference between two tables.
type Drift struct {
	Rows      uint64 `json:"rows"`      // expected rows
	Missing   uint64 `json:"missing"`   // expected rows that do not exist
	Extra     uint64 `json:"extra"`     // rows that should not exist
	Different uint64 `json:"different"` // rows with other contents than expected
	// First are the first differences, at most [DriftMax].
	First []Difference `json:"first,omitempty"`
}

// DriftMax bounds the differences that are listed.
const DriftMax = 20

// Difference is a row that differs from the expected one.
type Difference struct {
	Key       string `json:"key"`
	Want, Got []byte `json:",omitempty"` // nil: no such row
}

// Total returns the number of rows that differ.
func (d Drift) Total() uint64 { return d.Missing + d.Extra + d.Different }

// Compare checks P18 and P19: it compares a table with its expected contents row by row. Both
// come in the order of their keys, and equal rows have equal bytes.
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

// Reader checks P20 for one reader of the log, such as a projection or a client that follows
// events: it is shown the events that pass its filter, each once, in order.
type Reader struct {
	Name   string
	Filter eventlog.Filter
	due    []eventlog.Recorded // recorded, not shown yet; without data
}

// Event records the log's next event.
func (r *Reader) Event(e eventlog.Recorded) {
	if r.Filter.Passes(e.Stream, e.Name) {
		e.Data = nil
		r.due = append(r.due, e)
	}
}

// Shown judges the next event that the reader was shown.
func (r *Reader) Shown(e eventlog.Recorded) []Violation {
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

// Finish judges a reader at the end of the log.
func (r *Reader) Finish() []Violation {
	var found []Violation
	for _, d := range r.due {
		found = append(found, Violation{P20, d.Stream, d.Position, r.Name + " was not shown " + d.Name})
	}
	return found
}

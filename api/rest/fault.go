package rest

import (
	"errors"
	"slices"
	"strings"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Fault is one fault of a request, as RFC 9457, section 3, lists them in the member errors. One of
// Pointer, Parameter and Header names its place.
type Fault struct {
	// Pointer is the place in the body: a JSON pointer in its form for URIs (RFC 6901, section 6).
	Pointer   string `json:"pointer,omitempty"`
	Parameter string `json:"parameter,omitempty"` // of the query or of the path
	Header    string `json:"header,omitempty"`
	Detail    string `json:"detail"`
}

// faulted is a refusal with the faults that caused it.
type faulted struct {
	error
	faults []Fault
}

func (e *faulted) Unwrap() error { return e.error }

// InParameter adds to a refusal the parameter of the query or path that caused it.
func InParameter(name string, err error) error {
	return placed(Fault{Parameter: name}, err)
}

// inHeader adds to a refusal the header that caused it.
func inHeader(name string, err error) error {
	return placed(Fault{Header: name}, err)
}

// placed adds a fault at a place to a refusal. Other errors stay as they are.
func placed(at Fault, err error) error {
	var refused *eventlog.Refused
	if !errors.As(err, &refused) {
		return err
	}
	at.Detail = refused.Detail
	return &faulted{err, []Fault{at}}
}

// BadParameter refuses a parameter of the query ([ErrInvalidFilter]).
func BadParameter(name, format string, args ...any) error {
	return InParameter(name, ErrInvalidFilter.Because(format, args...))
}

// faultsOf returns the faults that an error names.
func faultsOf(err error) []Fault {
	var listed *faulted
	var refused *eventlog.Refused
	switch {
	case errors.As(err, &listed):
		return listed.faults
	case errors.As(err, &refused) && refused.Pointer != "":
		return []Fault{{Pointer: refused.Pointer, Detail: refused.Detail}}
	}
	return nil
}

// Under returns faults of a value as faults of the document that has the value at a place, such as 3
// for the fourth item of a list.
func Under(place string, faults []Fault) []Fault {
	out := slices.Clone(faults)
	for i, f := range out {
		if inner, ok := strings.CutPrefix(f.Pointer, "#"); ok {
			out[i].Pointer = "#/" + place + inner
		}
	}
	return out
}

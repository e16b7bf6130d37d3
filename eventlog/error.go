package eventlog

import (
	"errors"
	"fmt"
)

// Refusal is an expected rejection, from a closed list. Its text is its API code.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Refused is a [Refusal] with details of the case.
type Refused struct {
	Refusal Refusal
	Detail  string
	// Pointer is the place of the refused value in the command: a JSON pointer in its form for URIs
	// (RFC 6901, section 6), such as #/gas/limit. It is empty if no single value is at fault.
	Pointer string
}

func (r *Refused) Error() string { return string(r.Refusal) + ": " + r.Detail }
func (r *Refused) Unwrap() error { return r.Refusal }

// Because returns the refusal with details.
func (r Refusal) Because(format string, args ...any) error {
	return &Refused{Refusal: r, Detail: fmt.Sprintf(format, args...)}
}

// At returns the refusal with details, and the place of the refused value: see [Refused.Pointer].
func (r Refusal) At(pointer, format string, args ...any) error {
	return &Refused{Refusal: r, Detail: fmt.Sprintf(format, args...), Pointer: pointer}
}

// ConflictError reports that a stream is not at the version that an append expected.
type ConflictError struct {
	Stream   Stream
	Expected Version
	Actual   Version
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("stream %s is at version %d, not %d", e.Stream, e.Actual, e.Expected)
}

var (
	// ErrUnknown wraps an error after which the append may or may not be stored. Repeating the
	// same append, or reading the stream, shows which.
	ErrUnknown = errors.New("outcome unknown")
	// ErrTooLarge refuses an append above the store's limits; nothing was written.
	ErrTooLarge = errors.New("append over the store's limit")
	// ErrClosed is returned by a store that is closing or closed.
	ErrClosed = errors.New("store closed")
	// ErrMoved reports that another reader with the same name has moved the checkpoint. Nothing
	// was written.
	ErrMoved = errors.New("checkpoint moved by another reader")
	// ErrBusy reports that another process holds an exclusive resource.
	ErrBusy = errors.New("another process is at work on it")
)

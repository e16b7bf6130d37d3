package event

import (
	"errors"
	"fmt"
)

// Refusal is an expected no, from a closed list; its text is its API code.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Refused is a [Refusal] with a sentence about this case.
type Refused struct {
	Refusal Refusal
	Detail  string
}

func (r *Refused) Error() string { return string(r.Refusal) + ": " + r.Detail }
func (r *Refused) Unwrap() error { return r.Refusal }

// Because refuses with a sentence.
func (r Refusal) Because(format string, args ...any) error {
	return &Refused{Refusal: r, Detail: fmt.Sprintf(format, args...)}
}

// ConflictError says that a stream is not at the version an append expected.
type ConflictError struct {
	Stream   Stream
	Expected Version
	Actual   Version
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("stream %s is at version %d, not %d", e.Stream, e.Actual, e.Expected)
}

var (
	// ErrUnknown wraps an error after which nobody can say whether the append
	// stands. Appending the same events again, or reading, tells.
	ErrUnknown = errors.New("outcome unknown")
	// ErrTooLarge refuses an append over the store's limits; nothing was written.
	ErrTooLarge = errors.New("append over the store's limit")
	// ErrClosed is the answer of a store that is being or has been closed.
	ErrClosed = errors.New("store closed")
	// ErrMoved says that a checkpoint is not where its reader thought: another
	// reader of the same name has moved it. Nothing was written.
	ErrMoved = errors.New("checkpoint moved by another reader")
	// ErrBusy says that another process is at work on what only one at a time may have.
	ErrBusy = errors.New("another process is at work on it")
)

package terminal

import (
	"context"
	"errors"
	"fmt"
)

// Status is the exit status of a command. docs/reference/command-line.md explains each to users.
type Status int

// The statuses of all commands but check and healthcheck, whose callers prescribe other meanings.
const (
	OK          Status = 0
	Failed      Status = 1   // an error without a status of its own, or a check has found faults
	Usage       Status = 2   // a flag, an argument or a setting is wrong, or a check could not be made
	Refused     Status = 3   // the service refused, and changed nothing for what it refused
	NotFound    Status = 4   // the service or the log has no such thing
	Unavailable Status = 5   // the service was not reached, or is not able to answer now; nothing was changed
	Unknown     Status = 6   // the request was sent, and its answer was lost
	TimedOut    Status = 124 // a wait was over before the awaited milestone; timeout(1) has the same
	Interrupted Status = 130 // SIGINT or SIGTERM ended the command; shells report Ctrl-C so
)

// Meanings explains each status, in the order of the statuses.
func Meanings() []struct {
	Status  Status
	Meaning string
} {
	return []struct {
		Status  Status
		Meaning string
	}{
		{OK, "done; a verification or diagnosis found nothing wrong"},
		{Failed, "failed for another reason than those below; a verification, audit or diagnosis found a fault; a wait ended because its milestone cannot be reached any more"},
		{Usage, "wrong usage: a flag, an argument or a setting is wrong, and nothing was done. A verification or diagnosis also ends with it if it could not be finished"},
		{Refused, "the service refused the request, or at least one transaction or intent of it; what was refused changed nothing"},
		{NotFound, "the transaction, group, intent, endpoint, stream or key does not exist, or belongs to another client"},
		{Unavailable, "the service could not be reached, or cannot answer now (429, 503); nothing was changed, so repeat the command later"},
		{Unknown, "the request was sent and its answer was lost, so the outcome is unknown; to repeat the command is safe: the same transaction, or an intent with the same key, is not accepted twice"},
		{TimedOut, "a wait was over before the milestone was reached; the transaction or intent continues"},
		{Interrupted, "the command was interrupted (Ctrl-C or SIGTERM)"},
	}
}

// Error is an error with an exit status.
type Error struct {
	Status Status
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ExitStatus is the exit status of a command with this error.
func (e *Error) ExitStatus() Status { return e.Status }

// With gives an error an exit status. A nil error stays nil.
func With(status Status, err error) error {
	if err == nil {
		return nil
	}
	return &Error{status, err}
}

// quiet is an error whose command has told everything in its output.
type quiet struct{ status Status }

func (q quiet) Error() string      { return fmt.Sprintf("exit status %d", q.status) }
func (q quiet) ExitStatus() Status { return q.status }

// Quiet ends a command with a status, and prints no error. It is nil for OK.
func Quiet(status Status) error {
	if status == OK {
		return nil
	}
	return quiet{status}
}

// Misuse is the error of a wrong flag or argument. Nothing was done.
func Misuse(format string, args ...any) error { return With(Usage, fmt.Errorf(format, args...)) }

// StatusOf returns the exit status for an error. Of joined errors the first that has a status decides.
func StatusOf(err error) Status {
	var own interface{ ExitStatus() Status }
	switch {
	case err == nil:
		return OK
	case errors.As(err, &own):
		return own.ExitStatus()
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failed
}

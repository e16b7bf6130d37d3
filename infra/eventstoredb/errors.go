package eventstoredb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Kind is the meaning of a call's failure; the package documentation has the table of
// signs and consequences.
type Kind int

// The kinds of failures. Each of them passes by itself.
const (
	Gone         Kind = iota // the connection broke
	Away                     // no node was found in time; nothing was sent
	NotReady                 // the node takes part in an election
	NotLeader                // another node leads
	TimedOut                 // the server's own time limit passed before the commit
	SlowConsumer             // the server dropped a subscriber that did not keep up
	Canceled                 // the server gave the request up
	Late                     // no answer within the adapter's limit
	CutOff                   // the connection ended before the whole append was sent
	Behind                   // the node lacks events that another node has shown
)

func (k Kind) String() string {
	return [...]string{
		"connection gone", "no node found", "node not ready", "not the leader", "server timed out", "slow consumer",
		"canceled by the server", "no answer in time", "append cut off", "node behind",
	}[k]
}

// Failure is a transient error of one call. It is a net.Error.
type Failure struct {
	Kind Kind
	Err  error // its cause; may be nil
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return "eventstoredb: " + f.Kind.String()
	}
	return "eventstoredb: " + f.Kind.String() + ": " + f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// Timeout reports whether the failure is a missing answer.
func (f *Failure) Timeout() bool { return f.Kind == Late }

// Temporary is always true.
func (f *Failure) Temporary() bool { return true }

// unwritten reports whether an append that failed like this certainly wrote nothing.
func (k Kind) unwritten() bool {
	switch k {
	case Away, NotReady, NotLeader, CutOff:
		return true
	default:
		return false
	}
}

// replaces reports whether the failure calls for a new client: the connection is gone, or
// its node cannot answer for the cluster. Other callers keep the client otherwise.
func (k Kind) replaces() bool {
	switch k {
	case Gone, NotReady, NotLeader, CutOff:
		return true
	default:
		return false
	}
}

// WrongVersion is the server's refusal of an append: the stream is not at the expected
// version. The server counts writes that it has not committed yet, so At may be a version
// that no read shows, and that never will be if the leader is lost.
type WrongVersion struct{ At eventlog.Version }

func (w *WrongVersion) Error() string {
	return fmt.Sprintf("eventstoredb: the stream is at version %d by the leader's count", w.At)
}

// refusedError is a server's refusal to serve this client at all, which waiting does not mend.
type refusedError struct{ why error }

func (e *refusedError) Error() string {
	return "eventstoredb: no node serves this client: " + e.why.Error()
}
func (e *refusedError) Unwrap() error { return e.why }

// cutOffError is the error of an append that was not sent to its end.
type cutOffError struct{ error }

func (e *cutOffError) Unwrap() error { return e.error }

// errSlow is the cause of a call that got no answer within its limit.
var errSlow = errors.New("no answer within the limit")

// errEnded is the cause of a subscription that the server ended without an error.
var errEnded = errors.New("the server ended the subscription")

// Transient reports whether the same call may succeed a little later. The end of the
// caller's own context is not transient.
func Transient(err error) bool {
	var f *Failure
	return errors.As(err, &f)
}

// kindOf returns the kind of a transient error.
func kindOf(err error) (Kind, bool) {
	var f *Failure
	if !errors.As(err, &f) {
		return 0, false
	}
	return f.Kind, true
}

// classify turns an error of a call into a *Failure; a *WrongVersion and a permanent error
// stay as they are.
func classify(err error) error {
	switch {
	case errors.Is(err, errSlow):
		return &Failure{Late, err}
	case errors.Is(err, errEnded):
		return &Failure{Gone, err}
	}
	kind, ok := meaning(err)
	if !ok {
		return err
	}
	if cut := new(cutOffError); errors.As(err, &cut) && !kind.unwritten() {
		kind = CutOff
	}
	return &Failure{kind, err}
}

// meaning is the kind of a transient error by the server's status.
func meaning(err error) (Kind, bool) {
	switch grpcCode(err) {
	case codes.NotFound:
		return NotLeader, true
	case codes.Unavailable:
		if says(err, "not ready") {
			return NotReady, true
		}
		return Gone, true
	case codes.Aborted:
		return aborted(err), true
	case codes.DeadlineExceeded:
		return Late, true
	case codes.Canceled:
		if says(err, "by server") {
			return Canceled, true
		}
		return Gone, true
	case codes.Internal:
		return Gone, true
	}
	return 0, errors.Is(err, io.EOF)
}

// aborted tells apart the meanings of the server's Aborted.
func aborted(err error) Kind {
	switch {
	case says(err, "too slow"):
		return SlowConsumer
	case says(err, "timed out"), says(err, "timeout"):
		return TimedOut
	default:
		return Canceled
	}
}

// says reports whether the server's words, or the text of an error that is not the
// server's, hold some words, in any case.
func says(err error, words string) bool {
	text := err.Error()
	var answer interface{ GRPCStatus() *status.Status }
	if errors.As(err, &answer) {
		text = answer.GRPCStatus().Message()
	}
	return strings.Contains(strings.ToLower(text), words)
}

// hopeless reports whether a server that was found refuses this client for good.
func hopeless(err error) bool {
	switch grpcCode(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return true
	}
	return false
}

// refused reports whether the server refused an append for good, and wrote nothing.
func refused(err error) bool {
	if errors.Is(err, eventlog.ErrClosed) {
		return true
	}
	switch grpcCode(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented:
		return true
	}
	return false
}

// grpcCode is the gRPC status code of an error of the server or the connection; OK for
// any other error.
func grpcCode(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.OK
}

// Pauses between tries of one call.
const (
	retryFirst = 10 * time.Millisecond
	retryMost  = 500 * time.Millisecond
)

// bounded is a caller's context with the log's own limit.
func (l *Log) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.limit)
}

// retry repeats a read while its error is transient, until the caller's deadline or the
// log's limit: a change of leader is a delay. After the limit it returns the last
// transient error.
func retry[T any](ctx context.Context, l *Log, do func(context.Context) (T, error)) (T, error) {
	inner, cancel := l.bounded(ctx)
	defer cancel()
	var last error
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		v, err := do(inner)
		if err == nil || ctx.Err() != nil {
			return v, err
		}
		if Transient(err) {
			last = err
		} else if inner.Err() == nil {
			return v, err
		}
		if pause(inner, wait) != nil {
			if last == nil {
				last = &Failure{Late, errSlow}
			}
			if ctx.Err() != nil {
				last = ctx.Err()
			}
			return v, last
		}
	}
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package eventstoredb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// awayError says that no node could be reached within a call's patience. Nothing was sent.
type awayError struct{ why error }

func (e *awayError) Error() string {
	if e.why == nil {
		return "eventstoredb: no node is connected"
	}
	return "eventstoredb: no node is connected: " + e.why.Error()
}

func (e *awayError) Unwrap() error { return e.why }

// Timeout and Temporary make it a net.Error, as a connection's own is.
func (e *awayError) Timeout() bool   { return false }
func (e *awayError) Temporary() bool { return !hopeless(e.why) }

// brokenError is trouble with a connection, or with who is at its other end; a net.Error.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error   { return e.error }
func (e *brokenError) Timeout() bool   { return errors.Is(e.error, errSlow) }
func (e *brokenError) Temporary() bool { return true }

// errSlow is the answer of a call that was not answered in its time.
var errSlow = errors.New("eventstoredb: no answer in time")

// errBehind is the answer of a node that does not have what the head was read from.
var errBehind = errors.New("eventstoredb: the node is behind the one that was asked before")

// panicError is a panic of the client library, caught.
type panicError struct{ value any }

func (e *panicError) Error() string {
	return fmt.Sprintf("eventstoredb: the client panicked: %v", e.value)
}

// Transient reports whether the same call may well succeed a little later: no node was
// reached, the connection broke, another node leads now, or an answer was late. The
// caller's own context coming to its end is not transient.
func Transient(err error) bool {
	var away *awayError
	if errors.As(err, &away) {
		return !hopeless(away.why)
	}
	switch codeOf(err) {
	case esdb.ErrorCodeNotLeader, esdb.ErrorCodeConnectionClosed:
		return true
	}
	return errors.Is(err, errSlow) || errors.Is(err, errBehind) || cutOff(err) || broken(err)
}

// broken reports whether a call ended because its connection did, or would not do.
func broken(err error) bool {
	switch grpcCode(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Canceled:
		return true
	}
	return false
}

// spent reports whether an error is a reason to go on with a new client.
func spent(err error) bool {
	var p *panicError
	return errors.Is(err, errSlow) || errors.As(err, &p) || broken(err) || astray(err) ||
		codeOf(err) == esdb.ErrorCodeConnectionClosed
}

// astray reports whether a node answered that it is not the leader, and did not say who
// is: the client takes its NotFound for that of a stream.
func astray(err error) bool { return grpcCode(err) == codes.NotFound }

// hopeless reports whether a server that was found would not have us.
func hopeless(err error) bool {
	switch grpcCode(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return true
	}
	return err != nil && strings.Contains(err.Error(), "server version format")
}

// cutOff reports whether an append ended before all of it was sent. A server writes once
// it has the end; why it did not want that, the client does not tell.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) && strings.Contains(err.Error(), "could not send append request")
}

// unwritten reports whether an append's error is plain about it: the server refused.
func unwritten(err error) bool {
	var away *awayError
	if errors.As(err, &away) || errors.Is(err, event.ErrClosed) {
		return true
	}
	if cutOff(err) {
		return true
	}
	switch codeOf(err) {
	case esdb.ErrorCodeNotLeader, esdb.ErrorCodeStreamDeleted, esdb.ErrorCodeConnectionClosed:
		return true
	}
	switch grpcCode(err) {
	case codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition,
		codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented:
		return true
	}
	return false
}

// codeOf is the client's code of an error; the client wraps some of its errors, and its
// own FromError does not look inside.
func codeOf(err error) esdb.ErrorCode {
	var e *esdb.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return esdb.ErrorCodeUnknown
}

// grpcCode is the code that the server, or the connection, answered; OK for an error
// that is not theirs.
func grpcCode(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.OK
}

// noStream reports whether an error says that a stream does not exist.
func noStream(err error) bool {
	return codeOf(err) == esdb.ErrorCodeResourceNotFound && !astray(err)
}

// found reads out of a conflict at which version the stream was: the client keeps the
// number only in its text.
func found(err error) (at event.Version, ok bool) {
	_, text, ok := strings.Cut(err.Error(), "but got '")
	if !ok {
		return 0, false
	}
	text, _, _ = strings.Cut(text, "'")
	if text == "no_stream" {
		return 0, true
	}
	revision, err := strconv.ParseUint(text, 10, 63)
	return event.Version(revision + 1), err == nil
}

// Repeating what may be done twice: a few times in quick succession, for about two
// seconds in all.
const (
	retries    = 8
	retryFirst = 10 * time.Millisecond
	retryMost  = 500 * time.Millisecond
)

// retry repeats what may be done twice while its error is transient.
func retry[T any](ctx context.Context, do func() (T, error)) (T, error) {
	wait := retryFirst
	for tries := 1; ; tries++ {
		v, err := do()
		var away *awayError // which has waited for long
		if err == nil || tries == retries || !Transient(err) || errors.As(err, &away) || pause(ctx, wait) != nil {
			return v, err
		}
		wait = min(2*wait, retryMost)
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

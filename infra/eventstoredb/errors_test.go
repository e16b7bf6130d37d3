package eventstoredb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Each sign of the server or of the connection has one kind, and each kind its consequences.
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		sign      error
		kind      Kind
		unwritten bool // by an append
		replaces  bool // the connection
	}{
		{status.Error(codes.Aborted, "Operation timed out: Commit phase timeout"), TimedOut, false, false},
		{status.Error(codes.Aborted, "Operation timed out: Prepare phase timeout"), TimedOut, false, false},
		{status.Error(codes.Aborted, "Consumer too slow to handle event while live"), SlowConsumer, false, false},
		{status.Error(codes.Aborted, "Consumer too slow to handle event while transitioning to live"), SlowConsumer, false, false},
		{status.Error(codes.Aborted, "Request canceled by server"), Canceled, false, false},
		{status.Error(codes.Canceled, "Request canceled by server"), Canceled, false, false},
		{status.Error(codes.Unavailable, "Server Is Not Ready"), NotReady, true, true},
		{status.Error(codes.NotFound, "Leader info available"), NotLeader, true, true},
		{status.Error(codes.Unavailable, "connection refused"), Gone, false, true},
		{fmt.Errorf("the server is not ready to accept requests: %w", status.Error(codes.Unavailable, "connection reset")), Gone, false, true},
		{status.Error(codes.Internal, "stream terminated by RST_STREAM"), Gone, false, true},
		{status.Error(codes.Canceled, "grpc: the client connection is closing"), Gone, false, true},
		{errEnded, Gone, false, true},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), Late, false, false},
		{errSlow, Late, false, false},
		{&cutOffError{io.EOF}, CutOff, true, true},
		{&cutOffError{status.Error(codes.Unavailable, "connection reset")}, CutOff, true, true},
		{&cutOffError{status.Error(codes.Unavailable, "Server Is Not Ready")}, NotReady, true, true},
	} {
		err := classify(fmt.Errorf("read: %w", c.sign))
		kind, ok := kindOf(err)
		if !ok || kind != c.kind || !Transient(err) {
			t.Errorf("%v has the kind %v, %v; want %v", c.sign, kind, ok, c.kind)
		}
		if kind.unwritten() != c.unwritten || kind.replaces() != c.replaces {
			t.Errorf("%v: unwritten %v, replaces the connection %v", kind, kind.unwritten(), kind.replaces())
		}
		var network net.Error
		if !errors.As(err, &network) || network.Timeout() != (c.kind == Late) {
			t.Errorf("%v is no net.Error, or a wrong one", err)
		}
	}
	if !Away.unwritten() || Away.replaces() || Behind.unwritten() || Behind.replaces() {
		t.Error("Away and Behind are not about the connection; only Away says that nothing was written")
	}
	for _, permanent := range []error{
		status.Error(codes.InvalidArgument, "Maximum Append Size of 9 Exceeded."),
		status.Error(codes.Unauthenticated, "Unauthenticated"),
		status.Error(codes.PermissionDenied, "Access Denied"),
		status.Error(codes.FailedPrecondition, "x"), status.Error(codes.Unimplemented, "x"),
		eventlog.ErrClosed, &cutOffError{status.Error(codes.InvalidArgument, "Maximum Append Size of 9 Exceeded.")},
	} {
		if err := classify(permanent); Transient(err) || !refused(err) {
			t.Errorf("%v passes by itself, or may have written", err)
		}
	}
	for _, other := range []error{context.Canceled, errors.New("x")} {
		if Transient(classify(other)) || refused(other) {
			t.Errorf("%v is taken for one of the server's", other)
		}
	}
}

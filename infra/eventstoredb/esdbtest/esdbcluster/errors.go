package esdbcluster

import (
	"errors"
	"fmt"
)

// Errors of calls. The gRPC double has a status for each.
var (
	// ErrNotReady refuses every call while the cluster has no leader.
	ErrNotReady = errors.New("Server Is Not Ready") //nolint:staticcheck // the server's own words
	// ErrCommitTimeout ends an append without an answer; the outcome is unknown.
	ErrCommitTimeout = errors.New("Operation timed out: Commit phase timeout") //nolint:staticcheck // the server's own words
	// ErrSlow ends a live subscription that does not keep up.
	ErrSlow = errors.New("Operation timed out: Consumer too slow to handle event while live. Client resubscription required.") //nolint:staticcheck // the server's own words
	// ErrGone ends the calls of a node that was killed.
	ErrGone = errors.New("the node is gone")
)

// NotLeaderError refuses a call that only the leader serves.
type NotLeaderError struct{ Leader int }

func (e *NotLeaderError) Error() string {
	return fmt.Sprintf("Leader info available: node %d", e.Leader)
}

// ConflictError refuses an append to a stream that is not as expected.
type ConflictError struct {
	Exists   bool   // the stream has events
	Revision uint64 // of its last event; may count uncommitted writes
}

func (e *ConflictError) Error() string {
	if !e.Exists {
		return "wrong expected version: the stream does not exist"
	}
	return fmt.Sprintf("wrong expected version: the stream is at revision %d", e.Revision)
}

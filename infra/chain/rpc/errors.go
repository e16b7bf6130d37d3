package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// NodeError is an answer: the node understood the call and declined it.
type NodeError struct {
	Endpoint string
	Method   string
	Code     int    // JSON-RPC 2.0, EIP-1474, or the node's own
	Message  string // the node's words
	// Data is what came with the error, as the node wrote it: for calls of clients.
	Data json.RawMessage
}

func (e *NodeError) Error() string {
	return fmt.Sprintf("%s: %s: node says %d %s", e.Endpoint, e.Method, e.Code, e.Message)
}

// Unreachable means that there is no answer that can be used: refused, reset,
// timed out, an HTTP error, or a reply that is not what the protocol prescribes.
// What was asked for may have happened all the same.
type Unreachable struct {
	Endpoint string
	Status   int // HTTP status, when there was one
	Err      error

	malformed  bool          // it answered, but not as the protocol prescribes
	retryAfter time.Duration // how long it wants to be left alone, if it says so
}

func (e *Unreachable) Error() string { return fmt.Sprintf("%s: %v", e.Endpoint, e.Err) }
func (e *Unreachable) Unwrap() error { return e.Err }

// Ejected means that the endpoint serves another chain. It was not asked.
type Ejected struct {
	Endpoint string
	Reason   string
}

func (e *Ejected) Error() string { return fmt.Sprintf("%s: ejected: %s", e.Endpoint, e.Reason) }

// unverified means that the endpoint could not be asked which chain it serves,
// so it was asked nothing else.
type unverified struct{ err error }

func (e *unverified) Error() string { return e.err.Error() }
func (e *unverified) Unwrap() error { return e.err }

var (
	// errNotFound means that the node does not have the block asked for.
	errNotFound = errors.New("the node does not have that block")
	// errNoneHealthy means that no endpoint's answer could count.
	errNoneHealthy = errors.New("no endpoint is healthy")
)

// errContradiction is an answer that speaks of something else than was asked, or of
// what others deny.
var errContradiction = errors.New("answer contradicts the question")

func contradiction(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errContradiction, fmt.Errorf(format, args...))
}

// JSON-RPC codes with a meaning of their own. Source: JSON-RPC 2.0 section 5.1,
// EIP-1474.
const (
	codeInvalidRequest = -32600
	codeUnknownMethod  = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeUnsupported    = -32004
	codeLimitExceeded  = -32005
)

func nodeCode(err error) (int, bool) {
	var node *NodeError
	if errors.As(err, &node) {
		return node.Code, true
	}
	return 0, false
}

// otherChain is why an endpoint that serves another chain is ejected.
func otherChain(got, want chain.ID) string {
	return fmt.Sprintf("chain id is %d, not %d", got, want)
}

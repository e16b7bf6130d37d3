package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// NodeError is a node's answer that declines the call.
type NodeError struct {
	Endpoint string
	Method   string
	Code     int    // from JSON-RPC 2.0, EIP-1474, or the node's own
	Message  string // as the node wrote it, cleaned
	// Data is the error's data field as the node wrote it, for clients' calls.
	Data json.RawMessage
}

func (e *NodeError) Error() string {
	return fmt.Sprintf("%s: %s: node says %d %s", e.Endpoint, e.Method, e.Code, e.Message)
}

// Unreachable means that there is no usable answer: refused, reset, timed out, an HTTP error,
// or a reply that violates the protocol. The call may have taken effect all the same.
type Unreachable struct {
	Endpoint string
	Status   int // HTTP status; 0 if there was none
	Err      error

	malformed  bool          // it answered against the protocol
	retryAfter time.Duration // the pause that it asked for; 0 if none
}

func (e *Unreachable) Error() string { return fmt.Sprintf("%s: %v", e.Endpoint, e.Err) }
func (e *Unreachable) Unwrap() error { return e.Err }

// Ejected means that the endpoint serves another chain and was not asked.
type Ejected struct {
	Endpoint string
	Reason   string
}

func (e *Ejected) Error() string { return fmt.Sprintf("%s: ejected: %s", e.Endpoint, e.Reason) }

// unverified means that the endpoint's chain could not be verified, so it was asked nothing
// else.
type unverified struct{ err error }

func (e *unverified) Error() string { return e.err.Error() }
func (e *unverified) Unwrap() error { return e.err }

var (
	// errNotFound means that the node does not have the requested block.
	errNotFound = errors.New("the node does not have that block")
	// errNoneHealthy means that no healthy endpoint could answer.
	errNoneHealthy = errors.New("no endpoint is healthy")
)

// errContradiction is an answer that does not match its question or that other endpoints deny.
var errContradiction = errors.New("response contradicts the request")

func contradiction(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errContradiction, fmt.Errorf(format, args...))
}

// JSON-RPC error codes with a fixed meaning. Source: JSON-RPC 2.0 section 5.1, EIP-1474.
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

// otherChain is the reason for ejecting an endpoint of another chain.
func otherChain(got, want chain.ID) string {
	return fmt.Sprintf("chain id is %d, not %d", got, want)
}

package rpc

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// limits reports whether a node refused calls because of their rate, and the pause that it asked for;
// 0 if none. Nodes say so by HTTP status 429, or by a JSON-RPC error that [Classify] knows.
func limits(err error) (limited bool, pause time.Duration) {
	var lost *Unreachable
	if errors.As(err, &lost) {
		return lost.Status == http.StatusTooManyRequests, lost.retryAfter
	}
	var node *NodeError
	if !errors.As(err, &node) || node.quotesRevert() {
		return false, 0
	}
	_, cause := Classify(node.Code, node.Message)
	return cause == tx.RateLimited, 0
}

// isLimited reports whether a node refused calls because of their rate.
func isLimited(err error) bool {
	limited, _ := limits(err)
	return limited
}

// isUnable reports whether a node's error means that the node, or a proxy before it, is temporarily
// unable to answer.
func isUnable(err error) bool {
	code, answered := nodeCode(err)
	return answered && (code == codeInternal || code == codeLimitExceeded || isLimited(err))
}

// quotesRevert reports whether an error is about a failed execution. Its text is chosen by a contract,
// so by a client, and says nothing about the node. Not all nodes begin such texts alike.
func (e *NodeError) quotesRevert() bool {
	return e.isFailure() || strings.Contains(strings.ToLower(e.Message), "revert")
}

// isFailure reports whether an error means that an execution failed.
func (e *NodeError) isFailure() bool {
	failed := e.Code == codeReverted
	for _, text := range failures {
		failed = failed || strings.HasPrefix(strings.ToLower(e.Message), text)
	}
	return failed
}

// rest is the time until which an endpoint is not asked for its identity, because it refused that
// because of the rate.
type rest struct {
	until  time.Time
	length time.Duration
}

// lengthen begins a rest after a refusal. asked is the pause that the node asked for; 0 if none. The
// first rest is short, and they double.
func (r *rest) lengthen(now time.Time, asked time.Duration) {
	if asked == 0 {
		asked = pauseUnsaid
	}
	r.length = again(now, r.until, r.length, min(max(asked, pauseMin), pauseMax))
	r.until = later(r.until, now.Add(r.length))
}

// rested returns an error while the endpoint rests from questions for its identity.
func (e *endpoint) rested(now time.Time) error {
	e.mu.Lock()
	left := e.rest.until.Sub(now)
	e.mu.Unlock()
	if left <= 0 {
		return nil
	}
	return e.meter.refuse(len(whoCalls()), "the node's own", fmt.Sprintf("it requested a pause of another %s", left.Round(time.Millisecond)))
}

// refusedIdentity learns from a refusal to show the identity because of the rate. That neither counts
// against the endpoint nor shows its chain: the endpoint is asked again after a pause.
func (e *endpoint) refusedIdentity(now time.Time, l lesson) {
	e.meter.refused(now, &waiter{use: read, n: l.calls}, true, l.pause)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rest.lengthen(now, l.pause)
}

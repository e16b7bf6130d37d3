// Package notice schedules webhook deliveries: events of intents that are sent to their clients'
// endpoints. It does not send them itself.
//
// Delivery is at least once. Every delivery of an event has the same id.
package notice

import "time"

// Class sorts an attempt's result by its effect on the notice.
type Class string

const (
	Delivered Class = "delivered" // answered with success
	Gone      Class = "gone"      // the receiver wants no more deliveries at this URL
	Later     Class = "later"     // the receiver asks for a pause
	Failed    Class = "failed"    // any other answer, or not sent
	Unknown   Class = "unknown"   // sent without a complete answer: it may have been received
)

// Cause is why an attempt failed. Only the cause of an error is stored: its text may quote the
// receiver, or a URL with a secret.
type Cause string

const (
	NoCause   Cause = ""
	Status    Cause = "status"    // a status other than success
	Forbidden Cause = "forbidden" // the URL or its address is not allowed
	Name      Cause = "name"      // the host name did not resolve
	Connect   Cause = "connect"   // no connection
	TLS       Cause = "tls"       // no trusted TLS connection
	Timeout   Cause = "timeout"   // timed out
	Cut       Cause = "cut"       // the connection broke
	Protocol  Cause = "protocol"  // the answer is not complete HTTP, or its header is too large
	Unfit     Cause = "unfit"     // the notice cannot be sent: too large, or without secrets
	Off       Cause = "disabled"  // the endpoint is disabled: no attempt was made
)

// Outcome is the result of one attempt.
type Outcome struct {
	Class Class
	Cause Cause
	// Status is the answer's HTTP status; 0: no answer.
	Status int
	// RetryAfter is the pause in the receiver's answer, not bounded; 0: none.
	RetryAfter time.Duration
}

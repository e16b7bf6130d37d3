// Package notice decides about notices: events of intents that are told to their
// clients' endpoints. It knows no way of sending.
//
// What is told is told at least once, under one id however often it is sent.
package notice

import "time"

// Class is what the answer to one attempt means for the notice.
type Class string

const (
	Delivered Class = "delivered" // answered with success
	Gone      Class = "gone"      // the receiver wants nothing more at this URL
	Later     Class = "later"     // the receiver asks for a pause
	Failed    Class = "failed"    // answered otherwise, or never sent
	Unknown   Class = "unknown"   // sent, and no whole answer came: it may have been received
)

// Cause is why an attempt did not deliver. It is all that is kept of an error: an
// error's text may quote the receiver, or a URL that holds a secret.
type Cause string

const (
	NoCause   Cause = ""
	Status    Cause = "status"    // another status than success
	Forbidden Cause = "forbidden" // the URL or its address may not be called
	Name      Cause = "name"      // the host's name did not resolve
	Connect   Cause = "connect"   // no connection
	TLS       Cause = "tls"       // no trusted connection
	Timeout   Cause = "timeout"   // too slow
	Cut       Cause = "cut"       // the connection broke
	Protocol  Cause = "protocol"  // the answer is no whole HTTP, or its header is too large
	Unfit     Cause = "unfit"     // the notice itself cannot be sent: too large, or without secrets
	Off       Cause = "disabled"  // the endpoint is disabled: nothing was tried
)

// Outcome is what came of one attempt.
type Outcome struct {
	Class Class
	Cause Cause
	// Status is that of the answer; 0 when there was none.
	Status int
	// RetryAfter is the pause that the receiver asked for, as it stands in its answer;
	// 0 when it asked for none.
	RetryAfter time.Duration
}

package tx

import "time"

// Class sorts a node's answer to a broadcast by what follows from it.
type Class string

const (
	Taken     Class = "taken"     // the node took the bytes
	Known     Class = "known"     // the node had them already
	Retry     Class = "retry"     // not now, perhaps later
	Permanent Class = "permanent" // never: on the allow-list of permanent refusals
	Unknown   Class = "unknown"   // no answer that can be trusted: it may have been taken
)

// Cause names a node's reason where it changes what to do next. Empty is any other.
type Cause string

const (
	NonceTooLow  Cause = "nonce_too_low"  // used up: look for the receipt
	NonceTooHigh Cause = "nonce_too_high" // a predecessor is missing
	TooEarly     Cause = "too_early"      // before validAfter as the node sees it
	TooLate      Cause = "too_late"       // at, past or too near validBefore
	Funds        Cause = "funds"          // balance, fee token, fee liquidity
	Fee          Cause = "fee"            // below the base fee or the pool's minimum
	FeeCap       Cause = "fee_cap"        // gas limit × fee is above the node's own limit
	Underpriced  Cause = "underpriced"    // a rival with the same nonce is pooled
	PoolFull     Cause = "pool_full"
	KeyMissing   Cause = "key_missing"  // the access key is not (yet) authorised
	Replayed     Cause = "replayed"     // an expiring nonce already executed
	RateLimited  Cause = "rate_limited" // 429
	Unreachable  Cause = "unreachable"  // refused, reset, timed out
)

// Answer is what one endpoint said to one broadcast attempt.
type Answer struct {
	Endpoint string `json:"endpoint"` // the endpoint's name; never its URL, which may hold a key
	Class    Class  `json:"class"`
	Cause    Cause  `json:"cause,omitempty"`
	Code     int    `json:"code,omitempty"`    // JSON-RPC error code, or HTTP status
	Message  string `json:"message,omitempty"` // verbatim, cut at [MaxMessageBytes]
	// Took is from request to answer, in nanoseconds as Go counts them.
	Took time.Duration `json:"took,omitempty"`
}

// MaxMessageBytes bounds what is kept of a node's message.
const MaxMessageBytes = 512

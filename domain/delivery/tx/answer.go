package tx

import "time"

// Class sorts a node's answer to a broadcast by the reaction that it calls for.
type Class string

const (
	Taken     Class = "taken"     // the node accepted the bytes
	Known     Class = "known"     // the node had the bytes already
	Retry     Class = "retry"     // refused now, may be accepted later
	Permanent Class = "permanent" // refused for ever: the reason is on the allow-list of permanent refusals
	Unknown   Class = "unknown"   // no reliable answer: the node may have accepted the bytes
)

// Cause is a node's reason, for reasons that change the next step. It is empty for all others.
type Cause string

const (
	NonceTooLow  Cause = "nonce_too_low"  // the nonce is used: look for the receipt
	NonceTooHigh Cause = "nonce_too_high" // a predecessor is missing
	TooEarly     Cause = "too_early"      // before validAfter by the node's clock
	TooLate      Cause = "too_late"       // at, past or too near validBefore
	Funds        Cause = "funds"          // balance, fee token, fee liquidity
	Fee          Cause = "fee"            // below the base fee or the pool's minimum
	FeeCap       Cause = "fee_cap"        // gas limit × fee is above the node's own limit
	Underpriced  Cause = "underpriced"    // a rival with the same nonce is pooled
	PoolFull     Cause = "pool_full"
	KeyMissing   Cause = "key_missing"  // the access key is not authorized (yet)
	Replayed     Cause = "replayed"     // a transaction with an expiring nonce has already executed
	RateLimited  Cause = "rate_limited" // HTTP status 429
	Unreachable  Cause = "unreachable"  // refused, reset, timed out
)

// Sending tells the nodes' client for whom it sends a transaction.
type Sending struct {
	Client string // whose budget and turn it uses; empty if all clients are one
	// Repeat means that a node has dealt with the transaction before: see [State.Tried]. Repeats go
	// after first attempts.
	Repeat bool
	// Lane means that the relay has signed the transaction, and that other clients' transactions wait
	// for its nonce. It counts among the client's calls, but the pauses, rates and daily share of
	// calls that the client has used up do not stop it.
	Lane bool
}

// Answer is one endpoint's answer to one broadcast attempt.
type Answer struct {
	Endpoint string `json:"endpoint"` // the endpoint's name, not its URL, which may contain a key
	Class    Class  `json:"class"`
	Cause    Cause  `json:"cause,omitempty"`
	Code     int    `json:"code,omitempty"`    // JSON-RPC error code, or HTTP status
	Message  string `json:"message,omitempty"` // verbatim, cut at [MaxMessageBytes]
	// Took is the time from request to answer, in JSON as nanoseconds.
	Took time.Duration `json:"took,omitempty"`
}

// MaxMessageBytes is the length at which a node's message is cut.
const MaxMessageBytes = 512

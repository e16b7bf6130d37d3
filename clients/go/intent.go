package watchtower

// IntentStatus is the status of an intent.
type IntentStatus string

const (
	IntentWaiting   IntentStatus = "waiting"
	IntentAssigned  IntentStatus = "assigned"  // it has a nonce
	IntentSubmitted IntentStatus = "submitted" // a node has an attempt
	IntentCanceling IntentStatus = "canceling" // it is being stopped
	IntentMined     IntentStatus = "mined"     // a block contains an attempt; Receipt shows whether it reverted
	IntentCompleted IntentStatus = "completed" // that block is final
	IntentFailed    IntentStatus = "failed"
	IntentCanceled  IntentStatus = "canceled"
)

// IntentRequest is calls to carry out for a Signer or a Pool. The relay chooses every value that
// is left out. Amounts are decimal: wei, or the smallest unit of a token.
type IntentRequest struct {
	ChainID ChainID `json:"chainId"`
	// Key identifies the intent for the life of the service: draw it from the business object,
	// such as payout:17, not for each try. Another request under the same key is refused.
	Key    string `json:"key"`
	Signer string `json:"signer,omitempty"`
	Pool   string `json:"pool,omitempty"`

	// Calls, or one call by To, Value and Data.
	Calls []IntentCall `json:"calls,omitempty"`
	To    string       `json:"to,omitempty"`
	Value string       `json:"value,omitempty"`
	Data  string       `json:"data,omitempty"`

	Gas         *IntentGas        `json:"gas,omitempty"`
	NotBefore   int64             `json:"notBefore,omitempty"`   // Unix seconds at which the intent may get a nonce; 0 means at once
	Deadline    int64             `json:"deadline,omitempty"`    // Unix seconds at which the intent expires; 0 means never
	OrderingKey string            `json:"orderingKey,omitempty"` // intents with the same ordering key land in the order of their requests
	NonceKey    *IntentNonceKey   `json:"nonceKey,omitempty"`
	Subject     string            `json:"subject,omitempty"` // the client's own customer: limits and budgets may count by it
	Webhooks    []string          `json:"webhooks,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Simulate    bool              `json:"simulate,omitempty"` // an intent whose calls would revert is not sent
}

// IntentCall is one call of an intent.
type IntentCall struct {
	To    string `json:"to,omitempty"` // empty: a contract is created
	Value string `json:"value,omitempty"`
	Data  string `json:"data,omitempty"` // empty in lists
}

// IntentGas is what an intent may cost.
type IntentGas struct {
	Limit                uint64 `json:"limit,omitempty"`   // 0: the nodes' estimate, and a margin
	Urgency              string `json:"urgency,omitempty"` // slow, normal or fast
	MaxFeePerGas         string `json:"maxFeePerGas,omitempty"`
	MaxPriorityFeePerGas string `json:"maxPriorityFeePerGas,omitempty"`
	FeeToken             string `json:"feeToken,omitempty"`
	Sponsored            bool   `json:"sponsored,omitempty"`
}

// IntentNonceKey chooses the nonce sequence of an intent, on chains with several.
type IntentNonceKey struct {
	Mode string `json:"mode"`          // protocol, ordered or fixed
	Key  string `json:"key,omitempty"` // only with the mode fixed
}

// Intent is an intent's state.
type Intent struct {
	ID     string       `json:"id"`
	Status IntentStatus `json:"status"`
	Client string       `json:"client,omitempty"`

	Key         string            `json:"key"`
	ChainID     ChainID           `json:"chainId"`
	Signer      string            `json:"signer,omitempty"` // as requested
	Pool        string            `json:"pool,omitempty"`   // as requested
	Calls       []IntentCall      `json:"calls"`
	Gas         *IntentGas        `json:"gas,omitempty"`
	NotBefore   int64             `json:"notBefore,omitempty"`
	Deadline    int64             `json:"deadline,omitempty"`
	OrderingKey string            `json:"orderingKey,omitempty"`
	NonceKey    *IntentNonceKey   `json:"nonceKey,omitempty"`
	Subject     string            `json:"subject,omitempty"`
	Webhooks    []WebhookOrigin   `json:"webhooks,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Simulate    bool              `json:"simulate,omitempty"`

	Sequence       uint64          `json:"sequence"`                 // of the last event
	Place          *Place          `json:"place,omitempty"`          // nil until a nonce is assigned
	LeastFeePerGas string          `json:"leastFeePerGas,omitempty"` // set by a speed-up
	Attempts       []IntentAttempt `json:"attempts"`
	FirstTxHash    string          `json:"firstTxHash,omitempty"` // of the first attempt at the calls; a later one may be mined instead
	TxHash         string          `json:"txHash,omitempty"`      // of the attempt with the receipt
	Receipt        *IntentReceipt  `json:"receipt,omitempty"`
	Confirmations  []Block         `json:"confirmations,omitempty"`
	Stopping       *Stopping       `json:"stopping,omitempty"`
	WaitingFor     *WaitingFor     `json:"waitingFor,omitempty"`
	WaitingSince   int64           `json:"waitingSince,omitempty"`
	Outcome        *IntentOutcome  `json:"outcome,omitempty"`

	RequestedAt  int64   `json:"requestedAt"`
	UpdatedAt    int64   `json:"updatedAt,omitempty"`    // 0 in answers to commands
	RequestID    string  `json:"requestId,omitempty"`    // of the request that created the intent
	TraceID      string  `json:"traceId,omitempty"`      // of that request
	AlreadyKnown bool    `json:"alreadyKnown,omitempty"` // the intent had been requested before
	Waited       *Waited `json:"waited,omitempty"`       // nil without a wait
}

// WebhookOrigin is the origin of a webhook's URL, whose rest may be a secret.
type WebhookOrigin struct {
	Origin string `json:"origin"`
}

// Place is the signer and nonce of an intent.
type Place struct {
	Signer   string `json:"signer"`
	NonceKey string `json:"nonceKey"`
	Nonce    uint64 `json:"nonce"`
}

// IntentAttempt is one signed transaction of an intent.
type IntentAttempt struct {
	Attempt              int    `json:"attempt"`
	Kind                 string `json:"kind"` // first, bump or no-op
	TxHash               string `json:"txHash"`
	Replaces             string `json:"replaces,omitempty"` // hash
	MaxFeePerGas         string `json:"maxFeePerGas,omitempty"`
	MaxPriorityFeePerGas string `json:"maxPriorityFeePerGas,omitempty"`
	At                   int64  `json:"at"`
}

// IntentReceipt is the receipt of an intent's transaction.
type IntentReceipt struct {
	Block             Block  `json:"block"`
	TransactionIndex  uint64 `json:"transactionIndex"`
	Status            uint64 `json:"status"` // 0 means that a call reverted
	GasUsed           uint64 `json:"gasUsed"`
	EffectiveGasPrice string `json:"effectiveGasPrice,omitempty"`
	FeePayer          string `json:"feePayer,omitempty"`
	FeeToken          string `json:"feeToken,omitempty"`
}

// Stopping is why an intent is being stopped.
type Stopping struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// WaitingFor is why nothing is signed for an intent yet.
type WaitingFor struct {
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`
}

// IntentOutcome is how an intent ended. Of a completed intent, Reason is why it should have been
// stopped.
type IntentOutcome struct {
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	TxHash string `json:"txHash,omitempty"`
	Block  *Block `json:"block,omitempty"`
}

package watchtower

// MessageRequest is the request of an intent, as its messages carry it.
type MessageRequest struct {
	Client      string            `json:"client,omitempty"`
	Key         string            `json:"key"`
	ChainID     ChainID           `json:"chainId"`
	Signer      string            `json:"signer,omitempty"`
	Pool        string            `json:"pool,omitempty"`
	OrderingKey string            `json:"orderingKey,omitempty"`
	NotBefore   int64             `json:"notBefore,omitempty"`
	Deadline    int64             `json:"deadline,omitempty"`
	Subject     string            `json:"subject,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Calls       []MessageCall     `json:"calls"`
}

// MessageCall is one call of an intent.
type MessageCall struct {
	To        string `json:"to,omitempty"` // empty: a contract is created
	Value     string `json:"value"`
	Data      string `json:"data,omitempty"`     // empty if the inputs of all calls together are too long
	DataHash  string `json:"dataHash,omitempty"` // Keccak-256 of an input that is too long
	DataBytes int64  `json:"dataBytes,omitempty"`
}

// MessageState is an intent's state right after an event.
type MessageState struct {
	Status   IntentStatus `json:"status"`
	Signer   string       `json:"signer,omitempty"` // empty, like the nonce, while the intent has no nonce
	NonceKey string       `json:"nonceKey,omitempty"`
	Nonce    *uint64      `json:"nonce,omitempty"`
	Hash     string       `json:"hash,omitempty"` // of the mined transaction, or else of the last one that was signed for the nonce
	Kind     string       `json:"kind,omitempty"` // first, bump or no-op; a no-op carries out no calls
	Fee      *struct {
		MaxFee         string `json:"maxFee,omitempty"`
		MaxPriorityFee string `json:"maxPriorityFee,omitempty"`
	} `json:"fee,omitempty"`
	Receipt       *MessageReceipt `json:"receipt,omitempty"`
	Confirmations int64           `json:"confirmations"`
	Reason        string          `json:"reason,omitempty"`
	Detail        string          `json:"detail,omitempty"`
}

// MessageReceipt is the receipt of an intent's transaction.
type MessageReceipt struct {
	Block struct {
		Block
		Parent string `json:"parent"`
	} `json:"block"`
	Index             uint64 `json:"index"`
	Status            uint64 `json:"status"` // 0 means that a call reverted
	GasUsed           uint64 `json:"gasUsed"`
	EffectiveGasPrice string `json:"effectiveGasPrice,omitempty"`
	FeePayer          string `json:"feePayer,omitempty"`
	FeeToken          string `json:"feeToken,omitempty"`
}

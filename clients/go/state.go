package watchtower

// TransactionState is a transaction's state right after one of its events.
type TransactionState struct {
	ChainID    uint64        `json:"chainId"`
	TxHash     string        `json:"txHash"`
	Sender     string        `json:"sender"`
	FeePayer   string        `json:"feePayer,omitempty"`
	NonceKey   string        `json:"nonceKey"`
	Nonce      uint64        `json:"nonce"`
	GroupID    string        `json:"groupId,omitempty"` // empty while the sender is only claimed
	EligibleAt int64         `json:"eligibleAt"`        // Unix seconds
	ExpiresAt  int64         `json:"expiresAt,omitempty"`
	Status     Status        `json:"status"`
	Finalized  bool          `json:"finalized"` // the verdict's block is final
	Block      *StateBlock   `json:"block,omitempty"`
	Receipt    *StateReceipt `json:"receipt,omitempty"`
	Attempts   int64         `json:"attempts"` // the last recorded broadcast attempt
	Canceled   bool          `json:"canceled,omitempty"`
}

// StateBlock is the block on which a verdict rests.
type StateBlock struct {
	Number uint64 `json:"number"`
	Hash   string `json:"hash"`
	Parent string `json:"parent,omitempty"` // the hash of the block before it, if the verdict's source names it
	Time   int64  `json:"time"`             // Unix seconds
}

// StateReceipt is the receipt of an executed transaction.
type StateReceipt struct {
	Block             StateBlock `json:"block"`
	Index             uint64     `json:"index"`
	Status            uint64     `json:"status"` // 1, or 0 if the transaction reverted
	GasUsed           uint64     `json:"gasUsed"`
	EffectiveGasPrice string     `json:"effectiveGasPrice,omitempty"`
	FeePayer          string     `json:"feePayer,omitempty"`
	FeeToken          string     `json:"feeToken,omitempty"`
}

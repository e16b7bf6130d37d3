package chain

// Block holds the header fields that delivery needs.
type Block struct {
	Number uint64 `json:"number"`
	Hash   Hash   `json:"hash"`
	Parent Hash   `json:"parent,omitzero"`
	Time   uint64 `json:"time"` // Unix seconds, by the chain
}

// IsZero reports whether the block is unset.
func (b Block) IsZero() bool { return b.Hash.IsZero() }

// Contents holds the parts of a block's body that delivery needs.
type Contents struct {
	Hashes []Hash // of the transactions, in order
	// Used maps each sequence used by a transaction of the block to the chain's next nonce after
	// it. It is empty for a node that returns only hashes. It excludes nonces used in other ways:
	// EIP-7702 authorities, and contracts that create contracts.
	Used map[Sequence]uint64
}

// Window is the validity of a transaction, in Unix seconds of block time: from After (inclusive)
// until Before (exclusive). Zero: no bound. Source: Tempo's execution layer compares
// block.timestamp >= valid_after and block.timestamp < valid_before.
type Window struct {
	After  uint64 `json:"after,omitempty"`
	Before uint64 `json:"before,omitempty"`
}

// ClosedAt reports whether a block of that time is too late.
func (w Window) ClosedAt(time uint64) bool { return w.Before != 0 && time >= w.Before }

// Receipt is the chain's record of a transaction in a block and its result.
type Receipt struct {
	Block             Block    `json:"block"`
	Index             uint64   `json:"index"`
	Status            uint64   `json:"status"` // 1 success, 0 reverted; both use the nonce
	GasUsed           uint64   `json:"gasUsed"`
	EffectiveGasPrice string   `json:"effectiveGasPrice,omitempty"` // decimal; wei on Ethereum, attodollars on Tempo
	FeePayer          *Address `json:"feePayer,omitempty"`
	FeeToken          *Address `json:"feeToken,omitempty"`
}

package chain

// Block is a header as far as delivery cares for it.
type Block struct {
	Number uint64 `json:"number"`
	Hash   Hash   `json:"hash"`
	Parent Hash   `json:"parent,omitzero"`
	Time   uint64 `json:"time"` // Unix seconds, as the chain says
}

// IsZero reports whether the block is unset.
func (b Block) IsZero() bool { return b.Hash.IsZero() }

// Contents is what a block holds, as far as delivery cares for it.
type Contents struct {
	Hashes []Hash // of the transactions, in order
	// Used has, for each sequence in which a transaction of the block counts, the
	// next nonce that the chain wants after it. It is empty for a node that tells
	// hashes only, and nonces that a block uses otherwise (EIP-7702 authorities,
	// contracts that create contracts) are not in it.
	Used map[Sequence]uint64
}

// Window is when the chain will take a transaction, in Unix seconds of block
// time: from After (inclusive) until Before (exclusive). Zero is no bound.
// Source: Tempo's execution layer compares block.timestamp >= valid_after and
// block.timestamp < valid_before.
type Window struct {
	After  uint64 `json:"after,omitempty"`
	Before uint64 `json:"before,omitempty"`
}

// ClosedAt reports whether a block of that time is too late.
func (w Window) ClosedAt(time uint64) bool { return w.Before != 0 && time >= w.Before }

// Receipt is the chain's record that a transaction is in a block and how it ended.
type Receipt struct {
	Block             Block    `json:"block"`
	Index             uint64   `json:"index"`
	Status            uint64   `json:"status"` // 1 success, 0 reverted; either way the nonce is used
	GasUsed           uint64   `json:"gasUsed"`
	EffectiveGasPrice string   `json:"effectiveGasPrice,omitempty"` // decimal; wei on Ethereum, attodollars on Tempo
	FeePayer          *Address `json:"feePayer,omitempty"`
	FeeToken          *Address `json:"feeToken,omitempty"`
}

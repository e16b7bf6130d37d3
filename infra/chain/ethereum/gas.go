package ethereum

import (
	"bytes"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// A transaction's gas before any of its code runs, by the cheaper of two schedules: the
// schedule up to Osaka, and Amsterdam's, which is cheaper for some transactions (EIP-2780,
// EIP-8037; active on Sepolia since October 2026). The bytes do not tell their block's
// schedule, so [Decode] refuses gas only if both schedules refuse it. The floor of EIP-7623
// depends on the chain too: chains from before Prague do not have it, nor do some others since
// (Arbitrum). [Decode] leaves it to the node; see [LeastGas].
const (
	gasBase          = 12_000 // EIP-2780; 21,000 before Amsterdam
	gasRecipient     = 3_000  // EIP-2780: a recipient other than the sender
	gasValue         = 6_000  // EIP-2780: value moved to another account
	gasCreate        = 12_000 // EIP-2780; 32,000 before Amsterdam (EIP-2)
	gasZeroByte      = 4      // Yellow Paper, appendix G
	gasByte          = 16     // EIP-2028
	gasInitWord      = 2      // EIP-3860, per 32 bytes of init code
	gasAddress       = 2_400  // EIP-2930
	gasKey           = 1_900  // EIP-2930
	gasAuthorization = 7_816  // EIP-8037; 25,000 before Amsterdam (EIP-7702)

	gasToken      = 10 // EIP-7623, the floor per token of calldata
	tokensPerByte = 4  // EIP-7623; a zero byte is one token
)

// LeastGas returns at most the gas of any transaction with this call that a block can hold, on a
// chain with the floor of EIP-7623. It is for choosing a gas limit: on a chain without the floor
// less may do.
func LeastGas(call chain.Call) uint64 {
	size, zeros := sizes(call)
	return max(gasOf(call), gasBase+gasToken*(zeros+tokensPerByte*(size-zeros)))
}

// gasOf is at most the minimum gas of a call that the sender may make to itself.
func gasOf(call chain.Call) uint64 {
	size, zeros := sizes(call)
	gas := gasBase + gasZeroByte*zeros + gasByte*(size-zeros)
	if call.To == nil {
		gas += gasCreate + gasInitWord*((size+31)/32)
	}
	return gas
}

// sizes returns the number of bytes of a call's input, and of those that are zero.
func sizes(call chain.Call) (size, zeros uint64) {
	return uint64(len(call.Input)), uint64(bytes.Count(call.Input, []byte{0}))
}

// leastGas is at most the minimum gas of any fork. The sums cannot overflow: each term is
// bounded by MaxSize.
func (t *transaction) leastGas() uint64 {
	call := t.Calls[0]
	gas := gasOf(call)
	if call.To != nil && *call.To != t.Sender {
		gas += gasRecipient
		if !call.Value.IsZero() {
			gas += gasValue
		}
	}
	gas += gasAddress*t.addresses + gasKey*t.keys
	return gas + gasAuthorization*t.authorizations
}

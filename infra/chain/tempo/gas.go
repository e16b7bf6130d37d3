package tempo

import (
	"bytes"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// The gas of a transaction before any of its code runs, without what depends on its signature,
// its nonce and the chain's state. It is Osaka's schedule, of which the fork T1 raised parts.
// Source: tempoxyz/tempo, crates/revm.
const (
	gasBase       = 21_000  // Yellow Paper, appendix G
	gasCall       = 2_600   // EIP-2929, for each call but the first
	gasCreate     = 500_000 // TIP-1000
	gasZeroByte   = 4       // Yellow Paper, appendix G
	gasByte       = 16      // EIP-2028
	gasInitWord   = 2       // EIP-3860, per 32 bytes of init code
	gasToken      = 10      // EIP-7623, the floor per token of calldata
	tokensPerByte = 4       // EIP-7623; a zero byte is one token
)

// LeastGas returns at most the gas of any transaction with these calls that a block can hold.
func LeastGas(calls []chain.Call) uint64 {
	gas, tokens := uint64(gasBase+gasCall*max(len(calls)-1, 0)), uint64(0) //nolint:gosec // not negative
	for _, call := range calls {
		size, zeros := uint64(len(call.Input)), uint64(bytes.Count(call.Input, []byte{0}))
		gas += gasZeroByte*zeros + gasByte*(size-zeros)
		tokens += zeros + tokensPerByte*(size-zeros)
		if call.To == nil {
			gas += gasCreate + gasInitWord*((size+31)/32)
		}
	}
	return max(gas, gasBase+gasToken*tokens)
}

package ethereum

import "bytes"

// A transaction's gas before any of its code runs, by the cheaper of two schedules: the
// schedule up to Osaka, and Amsterdam's, which is cheaper for some transactions (EIP-2780,
// EIP-8037; active on Sepolia since October 2026). The bytes do not tell their block's
// schedule, so gas is refused only if both schedules refuse it. The floor of EIP-7623 depends
// on the fork too, and is left to the node.
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
)

// leastGas is at most the minimum gas of any fork. The sums cannot overflow: each term is
// bounded by MaxSize.
func (t *transaction) leastGas() uint64 {
	call := t.Calls[0]
	size, zeros := uint64(len(call.Input)), uint64(bytes.Count(call.Input, []byte{0}))

	gas := uint64(gasBase)
	switch {
	case call.To == nil:
		gas += gasCreate + gasInitWord*((size+31)/32)
	case *call.To != t.Sender:
		gas += gasRecipient
		if !call.Value.IsZero() {
			gas += gasValue
		}
	}
	gas += gasZeroByte*zeros + gasByte*(size-zeros)
	gas += gasAddress*t.addresses + gasKey*t.keys
	return gas + gasAuthorization*t.authorizations
}

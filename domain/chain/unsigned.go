package chain

import "github.com/holiman/uint256"

// Unsigned is a transaction before it is signed, of any chain's kind: a chain's
// encoder writes what is to be signed, and with the signature the transaction, from
// which [Signed] is read again. What a kind has no field for must be left zero.
type Unsigned struct {
	// Type is the first byte (EIP-2718), 0 for a legacy transaction.
	Type  uint8
	Chain ID
	// NonceKey is zero but on Tempo.
	NonceKey NonceKey
	Nonce    uint64
	Gas      uint64
	// Fees per gas: GasPrice for type 0, the other two for the rest.
	GasPrice, MaxFee, MaxPriorityFee *uint256.Int
	// Calls is one call, and on Tempo may be more.
	Calls []Call
	// Window and FeeToken are Tempo's; without a token, the account's own choice or
	// the chain's is taken.
	Window   Window
	FeeToken *Address
	// Sponsored says that somebody else pays, on Tempo: the sender then leaves the fee
	// token to them.
	Sponsored bool
}

package chain

import "github.com/holiman/uint256"

// Unsigned is a transaction before signing, of any chain's kind. The chain's encoder writes the
// bytes to sign, and with the signature the transaction, from which [Signed] is decoded. Leave
// fields zero that a kind does not have.
type Unsigned struct {
	// Type is the first byte (EIP-2718), 0 for a legacy transaction.
	Type  uint8
	Chain ID
	// NonceKey is zero except on Tempo.
	NonceKey NonceKey
	Nonce    uint64
	Gas      uint64
	// Fees per gas: GasPrice for type 0, the other two for all other types.
	GasPrice, MaxFee, MaxPriorityFee *uint256.Int
	// Calls holds one call, on Tempo one or more.
	Calls []Call
	// Window and FeeToken exist on Tempo only. Without FeeToken, the account's or the chain's
	// choice is used.
	Window   Window
	FeeToken *Address
	// Sponsored means that another account pays, on Tempo only: the sender leaves the fee token
	// to the fee payer.
	Sponsored bool
}

package chain

import (
	"fmt"

	"github.com/holiman/uint256"
)

// SignatureKind is the kind of signature that proves the sender.
type SignatureKind string

const (
	Secp256k1 SignatureKind = "secp256k1"
	P256      SignatureKind = "p256"
	WebAuthn  SignatureKind = "webauthn"
	// Keychain is an access key's signature: the sender is only claimed until the chain's
	// AccountKeychain confirms the key.
	Keychain SignatureKind = "keychain"
)

// Sequence identifies a sequence of nonces that must land in order.
type Sequence struct {
	Chain  ID
	Sender Address
	Key    NonceKey
}

// Signed holds the fields decoded from signed bytes. All of them are derived from the bytes
// alone.
type Signed struct {
	Chain ID
	// Hash is the Keccak-256 of the canonical re-encoding: the node's name for the transaction,
	// which is not always the hash of the received bytes.
	Hash      Hash
	Type      uint8
	Sender    Address
	Signature SignatureKind
	AccessKey *Address // the signing key, for Keychain
	// AccessKind is the kind of the access key's signature, for Keychain.
	AccessKind SignatureKind
	// Authorized means that the bytes contain an authorization of AccessKey, signed by the
	// sender's own key. It ends at AuthorizedUntil (Unix seconds, 0: never).
	Authorized      bool
	AuthorizedUntil uint64
	FeePayer        *Address // set if another account signed to pay
	FeeToken        *Address
	NonceKey        NonceKey
	Nonce           uint64
	Window          Window
	Gas             uint64
	// Fees per gas: GasPrice for types 0 and 1, the other two for all other types.
	GasPrice, MaxFee, MaxPriorityFee *uint256.Int
	Calls                            []Call
}

// Call is one call of a transaction. To is nil for contract creation.
type Call struct {
	To    *Address
	Value *uint256.Int
	Input []byte
}

// Sequence returns the sequence of the transaction's nonce.
func (s Signed) Sequence() Sequence { return Sequence{s.Chain, s.Sender, s.NonceKey} }

// Fault is why bytes are refused as a transaction.
type Fault string

const (
	FaultHex          Fault = "hex"           // not 0x and an even number of hex digits
	FaultType         Fault = "type"          // the transaction type is not supported
	FaultRLP          Fault = "rlp"           // not the structure of the type
	FaultTrailing     Fault = "trailing"      // extra bytes after the end
	FaultNonCanonical Fault = "non-canonical" // an integer or length not in its shortest form
	FaultOverflow     Fault = "overflow"      // a number too large for its field
	FaultSignature    Fault = "signature"     // the sender's signature is invalid
	FaultFeePayer     Fault = "fee-payer"     // the fee payer's signature is invalid
	FaultUnprotected  Fault = "unprotected"   // a legacy transaction without a chain id (EIP-155)
	FaultWrongChain   Fault = "wrong-chain"   // signed for another chain
	FaultTooLarge     Fault = "tx-too-large"  // over the size limit
	FaultInvalid      Fault = "invalid"       // can never be valid: window, calls, gas
)

// Malformed refuses bytes as a transaction. It is permanent, because it depends on the bytes
// alone.
type Malformed struct {
	Fault  Fault
	Detail string
}

func (m *Malformed) Error() string { return fmt.Sprintf("%s: %s", m.Fault, m.Detail) }

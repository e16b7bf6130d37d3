package chain

import (
	"fmt"

	"github.com/holiman/uint256"
)

// SignatureKind says what proved the sender.
type SignatureKind string

const (
	Secp256k1 SignatureKind = "secp256k1"
	P256      SignatureKind = "p256"
	WebAuthn  SignatureKind = "webauthn"
	// Keychain is an access key's signature: the sender is a claim until the
	// chain's AccountKeychain confirms the key.
	Keychain SignatureKind = "keychain"
)

// Sequence is the place where nonces must land in order.
type Sequence struct {
	Chain  ID
	Sender Address
	Key    NonceKey
}

// Signed is what a decoder reads off signed bytes. Everything in it follows from
// the bytes alone.
type Signed struct {
	Chain ID
	// Hash is the Keccak-256 of the canonical re-encoding: what the node calls
	// the transaction, which is not always the hash of the bytes received.
	Hash      Hash
	Type      uint8
	Sender    Address
	Signature SignatureKind
	AccessKey *Address // the key that signed, for Keychain
	// AccessKind is what kind of signature the access key made, for Keychain.
	AccessKind SignatureKind
	// Authorized: the transaction carries an authorization of AccessKey that the sender's
	// own key signed. It ends at AuthorizedUntil (Unix seconds, 0 never).
	Authorized      bool
	AuthorizedUntil uint64
	FeePayer        *Address // set when somebody else signed to pay
	FeeToken        *Address
	NonceKey        NonceKey
	Nonce           uint64
	Window          Window
	Gas             uint64
	// Fees per gas: GasPrice for types 0 and 1, the other two for the rest.
	GasPrice, MaxFee, MaxPriorityFee *uint256.Int
	Calls                            []Call
}

// Call is one call of a transaction. To is nil for contract creation.
type Call struct {
	To    *Address
	Value *uint256.Int
	Input []byte
}

// Sequence is where the transaction's nonce counts.
func (s Signed) Sequence() Sequence { return Sequence{s.Chain, s.Sender, s.NonceKey} }

// Fault is why bytes are not a transaction this service takes.
type Fault string

const (
	FaultHex          Fault = "hex"           // not 0x and an even number of hex digits
	FaultType         Fault = "type"          // a transaction type that is not supported
	FaultRLP          Fault = "rlp"           // not the structure that the type prescribes
	FaultTrailing     Fault = "trailing"      // bytes after the end
	FaultNonCanonical Fault = "non-canonical" // an integer or length not in its shortest form
	FaultOverflow     Fault = "overflow"      // a number that does not fit its field
	FaultSignature    Fault = "signature"     // the sender's signature does not hold
	FaultFeePayer     Fault = "fee-payer"     // the fee payer's signature does not hold
	FaultUnprotected  Fault = "unprotected"   // a legacy transaction without a chain id (EIP-155)
	FaultWrongChain   Fault = "wrong-chain"   // signed for another chain
	FaultTooLarge     Fault = "tx-too-large"  // over the size limit
	FaultInvalid      Fault = "invalid"       // can never be valid: window, calls, gas
)

// Malformed refuses bytes as a transaction, for ever: it follows from the bytes.
type Malformed struct {
	Fault  Fault
	Detail string
}

func (m *Malformed) Error() string { return fmt.Sprintf("%s: %s", m.Fault, m.Detail) }

// Package tempo reads signed Tempo transactions (type 0x76) and verifies the signatures of
// Tempo accounts: secp256k1, P-256, WebAuthn, and signatures by access keys (Keychain).
//
// The format is defined in tempoxyz/tempo, crates/primitives/src/transaction, up to the fork
// T10. The package imports domain/chain and infra/chain/rlp.
package tempo

import (
	"bytes"
	"fmt"
	"math"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/rlp"
)

// Type is the first byte of a Tempo transaction (EIP-2718).
const Type = 0x76

// feePayerFormat is the first byte of the bytes that a fee payer signs. Wallets also send this
// form to request sponsoring; it is no transaction.
const feePayerFormat = 0x78

// MaxSize is the largest transaction, in bytes, that a node's pool accepts: 128 KiB (reth's
// DEFAULT_MAX_TX_INPUT_BYTES).
const MaxSize = 128 << 10

// Decode reads a signed transaction and verifies the signatures of the sender and the fee
// payer. A *chain.Malformed says why these bytes are no valid transaction. Decode handles any
// input. It is at least as strict as the node's decoder, except for the fields of a key
// authorization, which grow with the forks.
//
// Signed.Hash is the hash of the canonical encoding, as the node computes it. It may differ
// from the hash of the bytes, because a signature's recovery byte can be written in several
// ways. With a Keychain signature, Sender is only the access key's claim.
//
// Refusals by a node's policy, which may change, are not made here: value in a call, a fee
// payer equal to the sender, a reserved nonce key, an expiring nonce without a window, too
// little gas. A closed window is not refused either: that needs a clock.
func Decode(raw []byte) (chain.Signed, error) {
	signed, _, err := decode(raw)
	return signed, err
}

// decode also returns the canonical encoding. It reads from a copy of the bytes, and in that
// copy normalizes the few bytes that a signature may write in several ways. All other content
// has only one encoding. So at the end the copy is canonical, and so is each signed piece of
// it.
func decode(raw []byte) (chain.Signed, []byte, error) {
	switch {
	case len(raw) == 0:
		return refuse(chain.FaultRLP, "there are no bytes")
	case len(raw) > MaxSize:
		return refuse(chain.FaultTooLarge, "%d bytes are more than %d", len(raw), MaxSize)
	case raw[0] == feePayerFormat:
		return refuse(chain.FaultType, "0x78 is a request to a fee payer, not a transaction")
	case raw[0] != Type:
		return refuse(chain.FaultType, "transaction type 0x%02x is unsupported", raw[0])
	}
	canonical := bytes.Clone(raw)
	tx, err := read(canonical[1:])
	if err != nil {
		return chain.Signed{}, nil, err
	}
	if err := tx.verify(); err != nil {
		return chain.Signed{}, nil, err
	}
	tx.Hash = chain.Keccak(canonical)
	return tx.Signed, canonical, nil
}

func refuse(fault chain.Fault, format string, args ...any) (chain.Signed, []byte, error) {
	return chain.Signed{}, nil, &chain.Malformed{Fault: fault, Detail: fmt.Sprintf(format, args...)}
}

// transaction is a parsed transaction before its signatures are verified. Field numbers follow
// the wire format.
type transaction struct {
	chain.Signed
	signature []byte   // the sender's, normalized
	payer     *sponsor // nil if the sender pays
	head      []byte   // the encoding of fields 0 to 9
	feeToken  []byte   // of field 10
	tail      []byte   // encoding of field 12 and of the key authorization, if any
	grant     *grant   // the key authorization, if any
}

// sponsor is a fee payer's signature.
type sponsor struct {
	parity uint64
	r, s   *uint256.Int
}

// read reads the list after the type byte, 14 or 15 items: the fields 0 to 12, the key
// authorization if any, and the sender's signature.
func read(b []byte) (*transaction, error) {
	l := rlp.Read(b)
	tx := &transaction{Signed: chain.Signed{Type: Type}}
	tx.Chain = chain.ID(l.Uint64("chain id"))
	tx.MaxPriorityFee = l.Uint("max priority fee", 128)
	tx.MaxFee = l.Uint("max fee", 128)
	tx.Gas = l.Uint64("gas")
	tx.Calls = calls(&l)
	l.AccessList("access list")
	tx.NonceKey = chain.NonceKey(l.Uint("nonce key", 256).Bytes32())
	tx.Nonce = l.Uint64("nonce")
	tx.Window.Before = l.Uint64("valid before") // first on the wire
	tx.Window.After = l.Uint64("valid after")
	tx.head = l.Taken()

	tx.FeeToken = l.MaybeAddress("fee token")
	tx.feeToken = l.Taken()[len(tx.head):]
	tx.payer = feePayer(&l)
	before := len(l.Taken())
	delegates := authorizations(&l)
	if l.NextIsList() {
		tx.grant = keyAuthorization(&l)
	}
	tx.tail = l.Taken()[before:]

	tx.signature = readSignature(&l, "signature", chain.FaultSignature, settle)
	l.End("transaction")
	tx.validate(&l, delegates)
	return tx, l.Err()
}

// calls reads [[to, value, input] …]; an empty to creates a contract.
func calls(l *rlp.List) (calls []chain.Call) {
	for list := l.List("calls"); list.More(); {
		entry := list.List("call")
		calls = append(calls, chain.Call{
			To:    entry.MaybeAddress("to"),
			Value: entry.Uint("value", 256),
			Input: entry.Bytes("input"),
		})
		entry.End("call")
	}
	return calls
}

// feePayer reads [v, r, s], where v is strictly 0 or 1, or an empty string.
func feePayer(l *rlp.List) *sponsor {
	const field = "fee payer signature"
	if !l.NextIsList() {
		if len(l.Bytes(field)) > 0 {
			l.Fail(chain.FaultFeePayer, field, "is still to be made")
		}
		return nil
	}
	list := l.List(field)
	s := &sponsor{parity: list.Uint64(field), r: list.Uint(field, 256), s: list.Uint(field, 256)}
	list.End(field)
	return s
}

// validate refuses transactions that no block can hold, by the checks of the node's decoder and
// the checks of the EVM that do not depend on the fork.
func (tx *transaction) validate(l *rlp.List, delegates bool) {
	if len(tx.Calls) == 0 {
		l.Fail(chain.FaultInvalid, "calls", "there are none")
	}
	for i, call := range tx.Calls {
		if call.To == nil && (i > 0 || delegates) {
			l.Fail(chain.FaultInvalid, "calls", "only the first may create a contract, and none beside an authorization list")
		}
	}
	if w := tx.Window; w.Before != 0 && w.Before <= w.After {
		l.Fail(chain.FaultInvalid, "window", "valid before must be later than valid after")
	}
	if tx.MaxPriorityFee.Gt(tx.MaxFee) {
		l.Fail(chain.FaultInvalid, "max priority fee", "is above max fee")
	}
	if tx.NonceKey.IsZero() && tx.Nonce == math.MaxUint64 {
		l.Fail(chain.FaultOverflow, "nonce", "an account's nonce never gets to 2^64-1 (EIP-2681)")
	}
	if tx.Chain == 0 {
		l.Fail(chain.FaultWrongChain, "chain id", "0 names no chain")
	}
}

// verify recovers the sender and the fee payer from their signatures.
func (tx *transaction) verify() error {
	by, err := verify(tx.signature, tx.senderDigest())
	if err != nil {
		return &chain.Malformed{Fault: chain.FaultSignature, Detail: err.Error()}
	}
	tx.Sender, tx.Signature, tx.AccessKey, tx.AccessKind = by.account, by.kind, by.accessKey, by.accessKind
	if tx.grant.covers(tx.Chain, by) {
		tx.Authorized, tx.AuthorizedUntil = true, tx.grant.until
	}
	if tx.payer == nil {
		return nil
	}
	var rs [64]byte
	tx.payer.r.WriteToSlice(rs[:32])
	tx.payer.s.WriteToSlice(rs[32:])
	payer, err := recoverSecp256k1(rs[:], tx.payer.parity, tx.payerDigest())
	if err != nil {
		return &chain.Malformed{Fault: chain.FaultFeePayer, Detail: err.Error()}
	}
	tx.FeePayer = &payer
	return nil
}

// senderDigest is the hash that the sender signs: of the fields and the key authorization. With
// a fee payer, the payer chooses the fee token: it is left out, and a single zero byte stands
// for the payer's signature.
func (tx *transaction) senderDigest() chain.Hash {
	if tx.payer != nil {
		return digest(Type, tx.head, []byte{0x80}, []byte{0x00}, tx.tail)
	}
	return digest(Type, tx.head, tx.feeToken, []byte{0x80}, tx.tail)
}

// payerDigest is the hash that the fee payer signs: of the same fields with the fee token, and
// with the sender in place of the signature.
func (tx *transaction) payerDigest() chain.Hash {
	sender := append([]byte{0x80 + byte(len(tx.Sender))}, tx.Sender[:]...)
	return digest(feePayerFormat, tx.head, tx.feeToken, sender, tx.tail)
}

// digest is the hash of a prefix byte and a list of encoded items.
func digest(prefix byte, items ...[]byte) chain.Hash {
	size := 0
	for _, item := range items {
		size += len(item)
	}
	head := append([]byte{prefix}, rlp.ListHeader(size)...)
	return chain.Keccak(append([][]byte{head}, items...)...)
}

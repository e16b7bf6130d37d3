// Package ethereum reads signed Ethereum transactions: legacy with EIP-155 (type
// 0), EIP-2930 (1), EIP-1559 (2) and EIP-7702 (4).
package ethereum

import (
	"bytes"
	"fmt"
	"math"

	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/rlp"
)

// The transaction types (EIP-2718). A legacy transaction has no type byte: it begins with an
// RLP list.
const (
	Legacy     = 0x00
	AccessList = 0x01
	DynamicFee = 0x02
	Blob       = 0x03 // recognized, and refused: a pool keeps blob data to itself
	SetCode    = 0x04

	legacyFirst = 0xc0
)

// MaxSize is the largest transaction, in bytes, that nodes' pools accept: 128 KiB, in
// go-ethereum (txMaxSize) and in reth.
const MaxSize = 128 << 10

// Decode reads a signed transaction and recovers its sender. A *chain.Malformed says why these
// bytes can never be executed. Decode handles any input, and is stricter than a node's decoder:
// it accepts exactly one encoding of a transaction, so the transaction's hash is the hash of
// the bytes.
//
// The caller checks Signed.Chain against its own chain. Decode refuses chain id 0 and ids of
// more than 64 bits.
func Decode(raw []byte) (chain.Signed, error) {
	switch {
	case len(raw) == 0:
		return refuse(chain.FaultRLP, "there are no bytes")
	case len(raw) > MaxSize:
		return refuse(chain.FaultTooLarge, "%d bytes are more than %d", len(raw), MaxSize)
	case raw[0] >= legacyFirst:
		return legacy(raw)
	}
	switch raw[0] {
	case AccessList, DynamicFee, SetCode:
		return typed(raw)
	case Blob:
		return refuse(chain.FaultType, "transaction type 0x03 (blob) is unsupported")
	default:
		return refuse(chain.FaultType, "transaction type 0x%02x is unsupported", raw[0])
	}
}

// legacy reads [nonce, gasPrice, gas, to, value, input, v, r, s]. By EIP-155, v is 35 or 36 + 2
// chainId, and the signed list ends in chainId, 0, 0 instead.
func legacy(raw []byte) (chain.Signed, error) {
	l := rlp.Read(raw)
	t := transaction{raw: raw, Signed: chain.Signed{Type: Legacy}}
	t.Nonce = l.Uint64("nonce")
	t.GasPrice = l.Uint("gas price", 256)
	t.Gas = l.Uint64("gas")
	t.Calls = []chain.Call{call(&l)}
	unsigned := l.Taken()
	v := l.Uint("v", 256)
	t.readSignature(&l)
	if err := l.Err(); err != nil {
		return chain.Signed{}, err
	}

	switch {
	case v.Eq(uint256.NewInt(27)), v.Eq(uint256.NewInt(28)):
		return refuse(chain.FaultUnprotected, "v is %s: signed for every chain at once (EIP-155 requires a chain id in it)", v)
	case v.LtUint64(35):
		return refuse(chain.FaultSignature, "v is %s", v)
	}
	v.SubUint64(v, 35)
	t.parity = v.Uint64() & 1
	if err := t.setChain(v.Rsh(v, 1)); err != nil {
		return chain.Signed{}, err
	}
	unsigned = append(bytes.Clone(unsigned), rlp.Uint64(uint64(t.Chain))...)
	unsigned = append(unsigned, rlp.Uint64(0)...)
	unsigned = append(unsigned, rlp.Uint64(0)...)
	t.digest = chain.Keccak(rlp.ListHeader(len(unsigned)), unsigned)
	return t.finish()
}

// typed reads, after the type byte, [chainId, nonce, fees, gas, to, value, input, accessList,
// authorizations (type 4), yParity, r, s]. The signed list has all but the last three.
func typed(raw []byte) (chain.Signed, error) {
	l := rlp.Read(raw[1:])
	t := transaction{raw: raw, Signed: chain.Signed{Type: raw[0]}}
	id := l.Uint("chain id", 256)
	t.Nonce = l.Uint64("nonce")
	if t.Type == AccessList {
		t.GasPrice = l.Uint("gas price", 256)
	} else {
		t.MaxPriorityFee = l.Uint("max priority fee", 256)
		t.MaxFee = l.Uint("max fee", 256)
	}
	t.Gas = l.Uint64("gas")
	t.Calls = []chain.Call{call(&l)}
	t.addresses, t.keys = l.AccessList("access list")
	if t.Type == SetCode {
		t.authorizations = authorizations(&l)
		if t.Calls[0].To == nil {
			l.Fail(chain.FaultRLP, "to", "may not be empty in a type 4 transaction")
		}
	}
	unsigned := l.Taken()
	t.parity = l.Uint64("y parity")
	t.readSignature(&l)
	if err := l.Err(); err != nil {
		return chain.Signed{}, err
	}
	if err := t.setChain(id); err != nil {
		return chain.Signed{}, err
	}
	t.digest = chain.Keccak([]byte{t.Type}, rlp.ListHeader(len(unsigned)), unsigned)
	return t.finish()
}

// call reads to, value and input.
func call(l *rlp.List) chain.Call {
	return chain.Call{
		To:    l.MaybeAddress("to"),
		Value: l.Uint("value", 256),
		Input: bytes.Clone(l.Bytes("input")),
	}
}

// authorizations reads [[chainId, address, nonce, yParity, r, s] …]. It checks only the points
// on which EIP-7702 makes the transaction's validity depend: the bounds of the fields, and that
// there is at least one entry. The chain skips an authorization with an invalid signature; the
// transaction stays valid.
func authorizations(l *rlp.List) (count uint64) {
	for list := l.List("authorizations"); list.More(); count++ {
		entry := list.List("authorization")
		entry.Uint("authorization chain id", 256)
		entry.Address("authorization address")
		entry.Uint64("authorization nonce")
		entry.Uint("authorization y parity", 8)
		entry.Uint("authorization r", 256)
		entry.Uint("authorization s", 256)
		entry.End("authorization")
	}
	if count == 0 {
		l.Fail(chain.FaultInvalid, "authorizations", "there are none (EIP-7702 wants at least one)")
	}
	return count
}

// transaction is the common form of all types.
type transaction struct {
	chain.Signed
	raw             []byte
	digest          chain.Hash // the hash that the sender signed
	parity          uint64
	r, s            *uint256.Int
	addresses, keys uint64 // of the access list
	authorizations  uint64
}

// readSignature reads the last two items of every type.
func (t *transaction) readSignature(l *rlp.List) {
	t.r, t.s = l.Uint("r", 256), l.Uint("s", 256)
	l.End("transaction")
}

func (t *transaction) setChain(id *uint256.Int) error {
	if id.IsZero() || !id.IsUint64() {
		return &chain.Malformed{Fault: chain.FaultWrongChain, Detail: fmt.Sprintf("chain id %s is invalid", id)}
	}
	t.Chain = chain.ID(id.Uint64())
	return nil
}

// finish validates the fields and recovers the sender.
func (t *transaction) finish() (chain.Signed, error) {
	if t.Nonce == math.MaxUint64 {
		return refuse(chain.FaultOverflow, "nonce: an account's nonce never gets to 2^64-1 (EIP-2681)")
	}
	if t.MaxFee != nil && t.MaxPriorityFee.Gt(t.MaxFee) {
		return refuse(chain.FaultInvalid, "max priority fee %s is above max fee %s (EIP-1559)", t.MaxPriorityFee, t.MaxFee)
	}
	sender, err := recoverSender(t.digest, t.r, t.s, t.parity)
	if err != nil {
		return refuse(chain.FaultSignature, "%v", err)
	}
	t.Hash = chain.Keccak(t.raw)
	t.Sender = sender
	t.Signature = chain.Secp256k1
	if least := t.leastGas(); t.Gas < least {
		return refuse(chain.FaultInvalid, "gas %d is below the transaction's intrinsic gas, %d", t.Gas, least)
	}
	return t.Signed, nil
}

func refuse(fault chain.Fault, format string, args ...any) (chain.Signed, error) {
	return chain.Signed{}, &chain.Malformed{Fault: fault, Detail: fmt.Sprintf(format, args...)}
}

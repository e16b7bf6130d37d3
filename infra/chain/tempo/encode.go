package tempo

import (
	"bytes"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Payload returns the bytes whose Keccak-256 the sender signs: the fields, without an access
// list, delegates and a key authorization. The error is a *chain.Malformed if a Tempo
// transaction cannot express tx. [Decode] checks whether a block can hold it.
func Payload(tx chain.Unsigned) ([]byte, error) {
	fields, err := fieldsOf(tx)
	if err != nil {
		return nil, err
	}
	if tx.Sponsored { // see senderDigest
		fields[feeTokenField], fields[payerField] = []byte{}, []byte{0}
	}
	return encode(Type, fields), nil
}

// PayerPayload returns the bytes whose Keccak-256 the fee payer of a sponsored transaction of
// this sender signs.
func PayerPayload(tx chain.Unsigned, sender chain.Address) ([]byte, error) {
	if !tx.Sponsored {
		return nil, unsayable(chain.FaultFeePayer, "the transaction is not sponsored")
	}
	fields, err := fieldsOf(tx)
	if err != nil {
		return nil, err
	}
	fields[payerField] = sender[:]
	return encode(feePayerFormat, fields), nil
}

// Encode returns the signed transaction, in the one encoding that nodes hash. signature is the
// sender's, of the [Payload], of any kind and with any recovery byte that nodes accept. payer
// is the fee payer's, of the [PayerPayload], as r s v; nil unless the transaction is sponsored.
// Encode verifies neither; [Decode] does.
func Encode(tx chain.Unsigned, signature, payer []byte) ([]byte, error) {
	fields, err := fieldsOf(tx)
	if err != nil {
		return nil, err
	}
	signature = bytes.Clone(signature)
	if err := settle(signature); err != nil {
		return nil, unsayable(chain.FaultSignature, "%v", err)
	}
	switch kind, err := primitiveKind(payer); {
	case tx.Sponsored && (err != nil || kind != chain.Secp256k1):
		return nil, unsayable(chain.FaultFeePayer, "a fee payer signs with secp256k1")
	case tx.Sponsored:
		fields[payerField] = []any{parity(payer[64]), new(big.Int).SetBytes(payer[:32]), new(big.Int).SetBytes(payer[32:64])}
	case payer != nil:
		return nil, unsayable(chain.FaultFeePayer, "the transaction is not sponsored")
	}
	return encode(Type, append(fields, signature)), nil
}

// Indexes of these fields.
const (
	feeTokenField = 10
	payerField    = 11
)

// fieldsOf are the fields 0 to 12 of a transaction without a fee payer.
func fieldsOf(tx chain.Unsigned) ([]any, error) {
	switch {
	case tx.Type != Type:
		return nil, unsayable(chain.FaultType, "type 0x%02x is not Tempo's", tx.Type)
	case tx.GasPrice != nil || tx.MaxFee == nil || tx.MaxPriorityFee == nil:
		return nil, unsayable(chain.FaultInvalid, "it has a max fee and a max priority fee, and no gas price")
	case tx.MaxFee.BitLen() > 128 || tx.MaxPriorityFee.BitLen() > 128:
		return nil, unsayable(chain.FaultOverflow, "a fee has more than 128 bits")
	}
	type call struct { // chain.Call in wire form: an empty To creates a contract
		To    []byte
		Value *uint256.Int
		Input []byte
	}
	calls := make([]call, len(tx.Calls))
	for i, c := range tx.Calls {
		calls[i] = call{maybe(c.To), c.Value, c.Input}
		if c.Value == nil {
			calls[i].Value = new(uint256.Int)
		}
	}
	none := []any{}
	return []any{
		uint64(tx.Chain), tx.MaxPriorityFee, tx.MaxFee, tx.Gas, calls,
		none, // access list
		new(uint256.Int).SetBytes(tx.NonceKey[:]), tx.Nonce, tx.Window.Before, tx.Window.After,
		maybe(tx.FeeToken),
		[]byte{}, // the fee payer's signature
		none,     // delegates
	}, nil
}

// maybe is an address, or no bytes.
func maybe(a *chain.Address) []byte {
	if a == nil {
		return []byte{}
	}
	return a[:]
}

// encode writes a first byte and a list of fields. It uses go-ethereum's RLP and not ours, so
// that our decoder is checked against an independent encoder.
func encode(first byte, fields []any) []byte {
	list, err := rlp.EncodeToBytes(fields)
	if err != nil {
		panic(err) // all fields are of kinds that RLP supports
	}
	return append([]byte{first}, list...)
}

func unsayable(fault chain.Fault, format string, args ...any) error {
	return &chain.Malformed{Fault: fault, Detail: fmt.Sprintf(format, args...)}
}

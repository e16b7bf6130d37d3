package tempo

import (
	"bytes"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Payload is what the sender signs, the Keccak-256 of it: the fields, without an
// access list, delegates and a key authorization. The error is a *chain.Malformed
// when a Tempo transaction cannot say what this one should; whether a block can hold
// what it says is for [Decode] to judge.
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

// PayerPayload is what the fee payer of a sponsored transaction signs, the Keccak-256
// of it, when this is the sender.
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

// Encode gives the transaction, in the one encoding that nodes hash. The signature is
// the sender's, of the [Payload], of any kind and with any recovery byte that nodes
// take; payer is the fee payer's, of the [PayerPayload], r s v, and nil unless the
// transaction is sponsored. Neither is verified: [Decode] does that.
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

// Where among the fields these are.
const (
	feeTokenField = 10
	payerField    = 11
)

// fieldsOf are the fields 0 to 12, as if nobody else paid.
func fieldsOf(tx chain.Unsigned) ([]any, error) {
	switch {
	case tx.Type != Type:
		return nil, unsayable(chain.FaultType, "type 0x%02x is not Tempo's", tx.Type)
	case tx.GasPrice != nil || tx.MaxFee == nil || tx.MaxPriorityFee == nil:
		return nil, unsayable(chain.FaultInvalid, "it has a max fee and a max priority fee, and no gas price")
	case tx.MaxFee.BitLen() > 128 || tx.MaxPriorityFee.BitLen() > 128:
		return nil, unsayable(chain.FaultOverflow, "a fee has more than 128 bits")
	}
	type call struct { // chain.Call as the wire has it: an empty To creates a contract
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

// maybe is an address, or nothing.
func maybe(a *chain.Address) []byte {
	if a == nil {
		return []byte{}
	}
	return a[:]
}

// encode writes a first byte and a list of fields. It is go-ethereum's RLP and not
// ours, so that whoever reads what is written here is checked against a stranger.
func encode(first byte, fields []any) []byte {
	list, err := rlp.EncodeToBytes(fields)
	if err != nil {
		panic(err) // the fields are all of kinds that RLP knows
	}
	return append([]byte{first}, list...)
}

func unsayable(fault chain.Fault, format string, args ...any) error {
	return &chain.Malformed{Fault: fault, Detail: fmt.Sprintf(format, args...)}
}

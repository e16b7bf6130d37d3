package ethereum

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Payload returns the bytes whose Keccak-256 the sender signs, for a legacy transaction (with
// the chain id, EIP-155) or one of type 2 (EIP-1559), without an access list. The error is a
// *chain.Malformed if such a transaction cannot express tx. [Decode] checks whether a block can
// hold it.
func Payload(tx chain.Unsigned) ([]byte, error) {
	fields, err := fieldsOf(tx)
	if err != nil {
		return nil, err
	}
	if tx.Type == Legacy {
		fields = append(fields, uint64(tx.Chain), uint64(0), uint64(0))
	}
	return encode(tx.Type, fields), nil
}

// Encode returns the signed transaction; its hash is the hash of the bytes. signature signs the
// [Payload], as r s v with v of 0 or 1, or 27 or 28. Encode does not verify it; [Decode] does.
func Encode(tx chain.Unsigned, signature []byte) ([]byte, error) {
	fields, err := fieldsOf(tx)
	if err != nil {
		return nil, err
	}
	if len(signature) != 65 {
		return nil, unsayable(chain.FaultSignature, "a signature of %d bytes is not r s v", len(signature))
	}
	v := uint64(signature[64])
	if v == 27 || v == 28 {
		v -= 27
	}
	if v > 1 {
		return nil, unsayable(chain.FaultSignature, "v is %d", v)
	}
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:64])
	if tx.Type == DynamicFee {
		return encode(tx.Type, append(fields, v, r, s)), nil
	}
	protected := new(big.Int).SetUint64(uint64(tx.Chain))
	protected.Lsh(protected, 1).Add(protected, new(big.Int).SetUint64(35+v))
	return encode(tx.Type, append(fields, protected, r, s)), nil
}

// fieldsOf are the leading fields shared by the signed list and the transaction.
func fieldsOf(tx chain.Unsigned) ([]any, error) {
	switch {
	case tx.Type != Legacy && tx.Type != DynamicFee:
		return nil, unsayable(chain.FaultType, "transaction type 0x%02x cannot be encoded", tx.Type)
	case len(tx.Calls) != 1:
		return nil, unsayable(chain.FaultInvalid, "%d calls, where there is one", len(tx.Calls))
	case !tx.NonceKey.IsZero() || tx.Window != (chain.Window{}) || tx.FeeToken != nil || tx.Sponsored:
		return nil, unsayable(chain.FaultInvalid, "a nonce key, a window, a fee token and a sponsor exist only on Tempo")
	case (tx.GasPrice != nil) != (tx.Type == Legacy),
		(tx.MaxFee != nil) != (tx.Type == DynamicFee), (tx.MaxPriorityFee != nil) != (tx.Type == DynamicFee):
		return nil, unsayable(chain.FaultInvalid, "type 0 has a gas price, type 2 a max fee and a max priority fee")
	}
	to, value := []byte{}, tx.Calls[0].Value
	if tx.Calls[0].To != nil {
		to = tx.Calls[0].To[:]
	}
	if value == nil {
		value = new(uint256.Int)
	}
	if tx.Type == Legacy {
		return []any{tx.Nonce, tx.GasPrice, tx.Gas, to, value, tx.Calls[0].Input}, nil
	}
	return []any{
		uint64(tx.Chain), tx.Nonce, tx.MaxPriorityFee, tx.MaxFee, tx.Gas, to, value, tx.Calls[0].Input,
		[]any{}, // access list
	}, nil
}

// encode writes the type byte, which a legacy transaction lacks, and a list of fields. It uses
// go-ethereum's RLP and not ours, so that our decoder is checked against an independent
// encoder.
func encode(kind uint8, fields []any) []byte {
	list, err := rlp.EncodeToBytes(fields)
	if err != nil {
		panic(err) // all fields are of kinds that RLP supports
	}
	if kind == Legacy {
		return list
	}
	return append([]byte{kind}, list...)
}

func unsayable(fault chain.Fault, format string, args ...any) error {
	return &chain.Malformed{Fault: fault, Detail: fmt.Sprintf(format, args...)}
}

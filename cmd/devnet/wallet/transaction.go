package wallet

import (
	"math/big"

	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// The first byte of a transaction (EIP-2718).
const (
	tempoType    = 0x76
	ethereumType = 0x02 // EIP-1559
)

// PathUSD is the token in which a Tempo chain takes fees unless told otherwise.
// anvil gives every development account plenty of it.
var PathUSD = chain.Address{0: 0x20, 1: 0xc0}

// Tempo is a Tempo transaction before it is signed.
type Tempo struct {
	Chain                  chain.ID
	MaxPriorityFee, MaxFee uint64 // attodollars per gas
	Gas                    uint64
	Calls                  []chain.Call
	NonceKey               chain.NonceKey
	Nonce                  uint64
	Window                 chain.Window
	FeeToken               *chain.Address // nil leaves it to the account and the chain
}

// call is [chain.Call] as the wire has it: an empty To creates a contract.
type call struct {
	To    []byte
	Value *uint256.Int
	Input []byte
}

// Sign gives the signed bytes. Source of the format: tempoxyz/tempo,
// crates/primitives/src/transaction.
func (tx Tempo) Sign(key Key) []byte {
	calls := make([]call, len(tx.Calls))
	for i, c := range tx.Calls {
		calls[i] = call{to(c.To), value(c.Value), c.Input}
	}
	fields := []any{
		uint64(tx.Chain), tx.MaxPriorityFee, tx.MaxFee, tx.Gas, calls,
		none, // access list
		new(uint256.Int).SetBytes(tx.NonceKey[:]), tx.Nonce, tx.Window.Before, tx.Window.After,
		to(tx.FeeToken),
		[]byte{}, // fee payer's signature
		none,     // authorization list
	}
	digest := chain.Keccak(encode(tempoType, fields))
	return encode(tempoType, append(fields, key.Sign(digest)))
}

// Ethereum is an Ethereum transaction of type 2 (EIP-1559) before it is signed.
type Ethereum struct {
	Chain                  chain.ID
	MaxPriorityFee, MaxFee uint64 // wei per gas
	Gas                    uint64
	Nonce                  uint64
	Call                   chain.Call
}

// Sign gives the signed bytes.
func (tx Ethereum) Sign(key Secp256k1) []byte {
	fields := []any{
		uint64(tx.Chain), tx.Nonce, tx.MaxPriorityFee, tx.MaxFee, tx.Gas,
		to(tx.Call.To), value(tx.Call.Value), tx.Call.Input,
		none, // access list
	}
	sig := key.recoverable(chain.Keccak(encode(ethereumType, fields)))
	r, s := new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:64])
	return encode(ethereumType, append(fields, uint64(sig[64]), r, s))
}

// Transfer is the call that moves a token's units to another account: TIP-20's
// and ERC-20's transfer(address,uint256).
func Transfer(token, to chain.Address, units uint64) chain.Call {
	input := make([]byte, 4+32+32)
	copy(input, []byte{0xa9, 0x05, 0x9c, 0xbb})
	copy(input[4+12:], to[:])
	uint256.NewInt(units).PutUint256(input[4+32:])
	return chain.Call{To: &token, Input: input}
}

// none is an empty list.
var none = []string{}

// encode writes a type byte and a list of fields. It is go-ethereum's RLP and not
// ours, so that whoever reads what is signed here is checked against a stranger.
func encode(kind byte, fields []any) []byte {
	list, err := rlp.EncodeToBytes(fields)
	if err != nil {
		panic(err) // the fields are all of kinds that RLP knows
	}
	return append([]byte{kind}, list...)
}

// to is an address, or nothing.
func to(a *chain.Address) []byte {
	if a == nil {
		return []byte{}
	}
	return a[:]
}

// value is a number, where nil means zero.
func value(n *uint256.Int) *uint256.Int {
	if n == nil {
		return new(uint256.Int)
	}
	return n
}

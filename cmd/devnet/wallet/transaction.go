package wallet

import (
	"github.com/holiman/uint256"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// PathUSD is the default token for fees on a Tempo chain. anvil funds every development account
// with it.
var PathUSD = chain.Address{0: 0x20, 1: 0xc0}

// Tempo is an unsigned Tempo transaction.
type Tempo struct {
	Chain                  chain.ID
	MaxPriorityFee, MaxFee uint64 // attodollars per gas
	Gas                    uint64
	Calls                  []chain.Call
	NonceKey               chain.NonceKey
	Nonce                  uint64
	Window                 chain.Window
	FeeToken               *chain.Address // nil: the account's or the chain's default
}

// Sign returns the signed bytes.
func (tx Tempo) Sign(key Key) []byte {
	unsigned := chain.Unsigned{
		Type: tempo.Type, Chain: tx.Chain, NonceKey: tx.NonceKey, Nonce: tx.Nonce, Gas: tx.Gas,
		MaxFee: uint256.NewInt(tx.MaxFee), MaxPriorityFee: uint256.NewInt(tx.MaxPriorityFee),
		Calls: tx.Calls, Window: tx.Window, FeeToken: tx.FeeToken,
	}
	signature := key.Sign(chain.Keccak(must(tempo.Payload(unsigned))))
	return must(tempo.Encode(unsigned, signature, nil))
}

// Ethereum is an unsigned Ethereum transaction of type 2 (EIP-1559).
type Ethereum struct {
	Chain                  chain.ID
	MaxPriorityFee, MaxFee uint64 // wei per gas
	Gas                    uint64
	Nonce                  uint64
	Call                   chain.Call
}

// Sign returns the signed bytes.
func (tx Ethereum) Sign(key Secp256k1) []byte {
	unsigned := chain.Unsigned{
		Type: ethereum.DynamicFee, Chain: tx.Chain, Nonce: tx.Nonce, Gas: tx.Gas,
		MaxFee: uint256.NewInt(tx.MaxFee), MaxPriorityFee: uint256.NewInt(tx.MaxPriorityFee),
		Calls: []chain.Call{tx.Call},
	}
	return must(ethereum.Encode(unsigned, key.Sign(chain.Keccak(must(ethereum.Payload(unsigned))))))
}

// Transfer is the call that transfers a token's units to another account:
// transfer(address,uint256) of TIP-20 and ERC-20.
func Transfer(token, to chain.Address, units uint64) chain.Call {
	input := make([]byte, 4+32+32)
	copy(input, []byte{0xa9, 0x05, 0x9c, 0xbb})
	copy(input[4+12:], to[:])
	uint256.NewInt(units).PutUint256(input[4+32:])
	return chain.Call{To: &token, Input: input}
}

// must panics on an error: transactions of these kinds can always be encoded.
func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

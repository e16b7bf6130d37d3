package delivery

import (
	"bytes"
	"crypto/ecdsa"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// forged is a transaction with arbitrary items, well formed or not, which is then signed
// correctly. It is encoded with go-ethereum's RLP.
type forged struct {
	kind  byte // 0 is legacy, which has no type byte
	items []any
}

// The items of EIP-1559's type 2.
const (
	eChain = iota
	eNonce
	eTip
	eCap
	eGas
	eTo
	eValue
	eData
	eAccess
)

// The items of Tempo's type 0x76.
const (
	tChain = iota
	tTip
	tCap
	tGas
	tCalls
	tAccess
	tNonceKey
	tNonce
	tBefore
	tAfter
	tFeeToken
	tFeePayer
	tAuthorizations
)

var recipient = bytes.Repeat([]byte{0xaa}, 20)

func type2() forged {
	return forged{2, []any{uint64(testChain), uint64(7), uint64(1), uint64(1_000_000_007), uint64(9_000_000), recipient, uint64(5), []byte{0xca, 0xfe}, []any{}}}
}

func type76() forged {
	return forged{0x76, []any{
		uint64(testChain), uint64(1), uint64(20_000_000_000), uint64(3_000_000),
		[]any{[]any{recipient, []byte{}, []byte{0xa9, 0x05, 0x9c, 0xbb}}},
		[]any{}, []byte{42}, uint64(7), uint64(0), uint64(0), []byte{}, []byte{}, []any{},
	}}
}

// legacyOf is nonce, gas price, gas, recipient, value and data.
func legacyOf() forged {
	return forged{0, []any{uint64(7), uint64(1_000_000_007), uint64(90_000), recipient, uint64(5), []byte{}}}
}

// with replaces an item. A value that is no item is appended.
func (f forged) with(at int, value any) forged {
	f.items = slices.Clone(f.items)
	if at == len(f.items) {
		f.items = append(f.items, value)
	}
	f.items[at] = value
	return f
}

// without drops the last item.
func (f forged) without() forged { return forged{f.kind, f.items[:len(f.items)-1]} }

func (f forged) encode(t testing.TB, items ...any) []byte {
	t.Helper()
	b, err := rlp.EncodeToBytes(items)
	if err != nil {
		t.Fatal(err)
	}
	if f.kind == 0 {
		return b
	}
	return append([]byte{f.kind}, b...)
}

// digest is the hash that is signed.
func (f forged) digest(t testing.TB) chain.Hash {
	t.Helper()
	items := f.items
	if f.kind == 0 {
		items = append(slices.Clone(items), uint64(testChain), uint64(0), uint64(0))
	}
	return chain.Keccak(f.encode(t, items...))
}

// signature returns r, s and the parity of the key's signature.
func (f forged) signature(t testing.TB, key *ecdsa.PrivateKey) (r, s *big.Int, parity uint64) {
	t.Helper()
	digest := f.digest(t)
	sig, err := crypto.Sign(digest[:], key)
	if err != nil {
		t.Fatal(err)
	}
	return new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:64]), uint64(sig[64])
}

// signed appends the given signature, valid or not.
func (f forged) signed(t testing.TB, r, s *big.Int, parity uint64) []byte {
	t.Helper()
	items := slices.Clone(f.items)
	switch f.kind {
	case 0:
		items = append(items, 35+2*testChain+parity, r, s)
	case 0x76:
		sig := make([]byte, 65)
		r.FillBytes(sig[:32])
		s.FillBytes(sig[32:64])
		sig[64] = byte(27 + parity)
		items = append(items, sig)
	default:
		items = append(items, parity, r, s)
	}
	return f.encode(t, items...)
}

// sign appends the key's signature.
func (f forged) sign(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	r, s, parity := f.signature(t, key)
	return f.signed(t, r, s, parity)
}

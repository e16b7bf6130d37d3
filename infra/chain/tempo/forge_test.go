package tempo_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// fields are a transaction's items for go-ethereum's RLP encoder, so that forged transactions
// share no code with the tested decoder.
type fields []any

// Indexes of the items.
const (
	fChain = iota
	fTip
	fMaxFee
	fGas
	fCalls
	fAccessList
	fNonceKey
	fNonce
	fBefore
	fAfter
	fFeeToken
	fFeePayer
	fAuthorizations
	fKeyAuthorization // or the signature
)

var (
	recipient = []byte("\x20\xc0recipient..........")[:20]
	fortyTwo  = []byte{42}
)

func plain() fields {
	return fields{
		uint64(42431), uint64(1), uint64(20_000_000_000), uint64(3_000_000),
		[]any{[]any{recipient, []byte{}, []byte{0xa9, 0x05, 0x9c, 0xbb}}},
		[]any{}, fortyTwo, uint64(7), uint64(0), uint64(0), []byte{}, []byte{}, []any{},
	}
}

// with replaces one item.
func (f fields) with(place int, item any) fields {
	out := append(fields{}, f...)
	out[place] = item
	return out
}

func (f fields) encode(t testing.TB, prefix byte) []byte {
	t.Helper()
	b, err := rlp.EncodeToBytes([]any(f))
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{prefix}, b...)
}

// digest is the hash that the sender of a transaction without a fee payer signs.
func (f fields) digest(t testing.TB) chain.Hash { return chain.Keccak(f.encode(t, 0x76)) }

// signed appends any bytes as the signature.
func (f fields) signed(t testing.TB, sig []byte) []byte {
	return append(append(fields{}, f...), sig).encode(t, 0x76)
}

// sign appends the test account's signature.
func (f fields) sign(t testing.TB) []byte {
	return f.signed(t, secp256k1(t, f.digest(t)))
}

// The secp256k1 keys of the sending account and of the account that may pay.
func testKey(t testing.TB) *ecdsa.PrivateKey  { return secpKey(t, "watchtower test key") }
func payerKey(t testing.TB) *ecdsa.PrivateKey { return secpKey(t, "watchtower test fee payer") }

func secpKey(t testing.TB, seed string) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte(seed)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func testAccount(t testing.TB) chain.Address {
	return chain.Address(crypto.PubkeyToAddress(testKey(t).PublicKey))
}

// secp256k1 signs with the test key: r s v, with v of 27 or 28.
func secp256k1(t testing.TB, digest chain.Hash) []byte {
	t.Helper()
	sig, err := crypto.Sign(digest[:], testKey(t))
	if err != nil {
		t.Fatal(err)
	}
	sig[64] += 27
	return sig
}

// highS is the other valid s.
func highS(sig []byte) []byte {
	s := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(sig[32:64]))
	out := append([]byte{}, sig...)
	s.FillBytes(out[32:64])
	out[64] ^= 27 ^ 28
	return out
}

func p256Key(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), crypto.Keccak256([]byte("watchtower P-256 test key")))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func p256Account(t testing.TB) chain.Address {
	hash := chain.Keccak(p256Public(t))
	return chain.Address(hash[12:])
}

func p256Public(t testing.TB) []byte {
	t.Helper()
	public, err := p256Key(t).PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return public[1:]
}

// p256Sign returns r s x y, with the lower s.
func p256Sign(t testing.TB, digest [32]byte) []byte {
	t.Helper()
	r, s, err := ecdsa.Sign(nil, p256Key(t), digest[:])
	if err != nil {
		t.Fatal(err)
	}
	if n := elliptic.P256().Params().N; s.Cmp(new(big.Int).Rsh(n, 1)) > 0 {
		s.Sub(n, s)
	}
	rs := make([]byte, 64)
	r.FillBytes(rs[:32])
	s.FillBytes(rs[32:])
	return append(rs, p256Public(t)...)
}

// webAuthn signs the digest like an authenticator with these flags, for a client that writes
// this JSON.
func webAuthn(t testing.TB, flags byte, client string) []byte {
	t.Helper()
	authenticator := make([]byte, 37)
	authenticator[32] = flags
	hash := sha256.Sum256([]byte(client))
	signed := sha256.Sum256(append(append([]byte{}, authenticator...), hash[:]...))
	sig := append([]byte{0x02}, authenticator...)
	sig = append(sig, client...)
	return append(sig, p256Sign(t, signed)...)
}

// clientData is a browser's client data.
func clientData(digest chain.Hash) string {
	return `{"type":"webauthn.get","challenge":"` + challenge(digest) + `","origin":"https://example.org","crossOrigin":false}`
}

func challenge(digest chain.Hash) string { return base64.RawURLEncoding.EncodeToString(digest[:]) }

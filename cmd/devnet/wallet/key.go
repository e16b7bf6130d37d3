// Package wallet signs transactions for demonstrations and tests. Its keys are public knowledge:
// never use them for anything of value. The delivery service must not link it.
package wallet

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"math/big"

	ethcrypto "github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Key is an account's key.
type Key interface {
	Address() chain.Address
	// Sign signs a digest in the form of a Tempo transaction (a primitive signature). It is
	// deterministic.
	Sign(digest chain.Hash) []byte
}

// Devs is the number of accounts of [Dev].
const Devs = len(devKeys)

// devKeys belong to the mnemonic "test test test test test test test test test test test junk"
// at m/44'/60'/0'/0/i. anvil, hardhat and our own simulated chain fund these accounts.
var devKeys = [...]string{
	"ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
	"59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
	"5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
	"7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
	"47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
	"8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
	"92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
	"4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
	"dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
	"2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
}

// Dev is the i-th well-known development account, 0 to [Devs]-1.
func Dev(i int) Secp256k1 {
	secret, err := hex.DecodeString(devKeys[i])
	if err != nil {
		panic(err)
	}
	key, err := NewSecp256k1([32]byte(secret))
	if err != nil {
		panic(err)
	}
	return key
}

// DevSecret is the key of [Dev] in hex, for a program that takes keys.
func DevSecret(i int) string { return devKeys[i] }

// Secp256k1 is a key of the kind of Ethereum accounts.
type Secp256k1 struct{ key *ecdsa.PrivateKey }

// NewSecp256k1 returns the key with this number; zero and numbers not below the curve's order
// are refused.
func NewSecp256k1(secret [32]byte) (Secp256k1, error) {
	key, err := ethcrypto.ToECDSA(secret[:])
	if err != nil {
		return Secp256k1{}, fmt.Errorf("secp256k1 key: %w", err)
	}
	return Secp256k1{key}, nil
}

// Address is the account's address.
func (k Secp256k1) Address() chain.Address {
	return chain.Address(ethcrypto.PubkeyToAddress(k.key.PublicKey))
}

// Sign returns r, s and 27 or 28, with the lower s (EIP-2).
func (k Secp256k1) Sign(digest chain.Hash) []byte {
	sig, err := ethcrypto.Sign(digest[:], k.key)
	if err != nil {
		panic(err) // a valid key signs every digest
	}
	sig[64] += 27
	return sig
}

// P256 is a key of the kind in phones and security chips.
type P256 struct{ key *ecdsa.PrivateKey }

// NewP256 returns the key with this number; zero and numbers not below the curve's order are
// refused.
func NewP256(secret [32]byte) (P256, error) {
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), secret[:])
	if err != nil {
		return P256{}, fmt.Errorf("P-256 key: %w", err)
	}
	return P256{key}, nil
}

// public returns the public key's x and y.
func (k P256) public() []byte {
	point, err := k.key.PublicKey.Bytes()
	if err != nil {
		panic(err) // it came from a valid key
	}
	return point[1:] // without the first byte, which means "uncompressed"
}

// Address is the account's address.
func (k P256) Address() chain.Address {
	hash := chain.Keccak(k.public())
	return chain.Address(hash[12:])
}

// Sign returns 0x01, r, s, x, y and 0: the digest was not hashed again.
func (k P256) Sign(digest chain.Hash) []byte {
	der, err := k.key.Sign(nil, digest[:], crypto.SHA256) // RFC 6979: no randomness
	if err != nil {
		panic(err) // a valid key signs every digest
	}
	var n struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &n); err != nil {
		panic(err)
	}
	order := elliptic.P256().Params().N
	if half := new(big.Int).Rsh(order, 1); n.S.Cmp(half) > 0 {
		n.S.Sub(order, n.S) // Tempo accepts the lower s only
	}
	sig := make([]byte, 1+32+32, 130)
	sig[0] = 0x01
	n.R.FillBytes(sig[1:33])
	n.S.FillBytes(sig[33:65])
	return append(append(sig, k.public()...), 0)
}

package tempo

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/rlp"
)

// A signature's kind follows from its length and its first byte:
//
//	65 bytes, any first byte      secp256k1   r s v
//	0x01, 130 bytes               P-256       r s x y prehash
//	0x02, 129 to 2049 bytes       WebAuthn    data, r s x y
//	0x03 account primitive        Keychain V1: the access key signs the digest
//	0x04 account primitive        Keychain V2: it signs the account with it
//
// r, s, x and y take 32 bytes each; an account takes 20; a primitive is one of the first three.
// Source: tempoxyz/tempo, tt_signature.rs.
const (
	secp256k1Size = 65
	p256Type      = 0x01
	p256Size      = 1 + 129
	webAuthnType  = 0x02
	webAuthnLeast = 1 + 128
	webAuthnMost  = 1 + 2048
	keychainV1    = 0x03
	keychainV2    = 0x04
	accountEnd    = 1 + 20
)

// VerifyPrimitive returns the account that signed a digest, and the kind of its key, for a
// primitive signature. An access key's signature (Keychain) is refused, because it may name any
// account. The error is a *chain.Malformed.
func VerifyPrimitive(sig []byte, digest chain.Hash) (chain.Address, chain.SignatureKind, error) {
	account, kind, err := verifyPrimitive(sig, digest)
	if err != nil {
		return chain.Address{}, "", &chain.Malformed{Fault: chain.FaultSignature, Detail: err.Error()}
	}
	return account, kind, nil
}

// signer is the account that a signature commits, and how it signed.
type signer struct {
	account   chain.Address
	kind      chain.SignatureKind
	accessKey *chain.Address // the key that signed in the account's name
	// accessKind is the kind of its signature.
	accessKind chain.SignatureKind
	// legacy is set for the form that does not bind the account to the key's signature
	// (Keychain V1), which chains no longer accept.
	legacy bool
}

// verify verifies a signature of any kind.
func verify(sig []byte, digest chain.Hash) (signer, error) {
	if !isKeychain(sig) {
		account, kind, err := verifyPrimitive(sig, digest)
		return signer{account: account, kind: kind}, err
	}
	account := chain.Address(sig[1:accountEnd])
	if sig[0] == keychainV2 {
		digest = chain.Keccak([]byte{keychainV2}, digest[:], account[:])
	}
	key, kind, err := verifyPrimitive(sig[accountEnd:], digest)
	return signer{account: account, kind: chain.Keychain, accessKey: &key, accessKind: kind, legacy: sig[0] == keychainV1}, err
}

func isKeychain(sig []byte) bool {
	return len(sig) != secp256k1Size && len(sig) > accountEnd && (sig[0] == keychainV1 || sig[0] == keychainV2)
}

func verifyPrimitive(sig []byte, digest chain.Hash) (account chain.Address, kind chain.SignatureKind, err error) {
	kind, err = primitiveKind(sig)
	if err != nil {
		return chain.Address{}, "", err
	}
	switch kind {
	case chain.Secp256k1:
		account, err = recoverSecp256k1(sig[:64], parity(sig[64]), digest)
	case chain.P256:
		if sig[p256Size-1] != 0 {
			digest = sha256.Sum256(digest[:])
		}
		account, err = verifyP256(sig[1:p256Size-1], digest)
	case chain.WebAuthn:
		data, rest := sig[1:len(sig)-128], sig[len(sig)-128:]
		if digest, err = webAuthnDigest(data, digest); err == nil {
			account, err = verifyP256(rest, digest)
		}
	}
	return account, kind, err
}

// primitiveKind checks the form only.
func primitiveKind(sig []byte) (chain.SignatureKind, error) {
	switch n := len(sig); {
	case n == 0:
		return "", errors.New("the signature is empty")
	case n == secp256k1Size:
		if v := sig[64]; v > 1 && v < 27 || v > 28 && v < 35 {
			return "", fmt.Errorf("a recovery byte of %d is unknown", v)
		}
		return chain.Secp256k1, nil
	case sig[0] == p256Type && n == p256Size:
		return chain.P256, nil
	case sig[0] == webAuthnType && n >= webAuthnLeast && n <= webAuthnMost:
		return chain.WebAuthn, nil
	default:
		return "", fmt.Errorf("signature type 0x%02x of %d bytes is unsupported", sig[0], n)
	}
}

// parity reads a recovery byte: 0 or 1, 27 or 28, or 35 and up as in EIP-155.
func parity(v byte) uint64 {
	if v >= 27 {
		v -= 27 // 35 - 27 is even
	}
	return uint64(v & 1)
}

// readSignature reads a signature and normalizes it. Another form is reported as fault.
func readSignature(l *rlp.List, field string, fault chain.Fault, settle func([]byte) error) []byte {
	sig := l.Bytes(field)
	if l.Err() != nil {
		return nil
	}
	if err := settle(sig); err != nil {
		l.Fail(fault, field, err.Error())
	}
	return sig
}

// settlePrimitive normalizes a primitive signature, in place, to the form that a node writes: v
// is 27 or 28, prehash is 0 or 1. All other bytes have only one form.
func settlePrimitive(sig []byte) error {
	kind, err := primitiveKind(sig)
	switch last := len(sig) - 1; {
	case err != nil:
		return err
	case kind == chain.Secp256k1:
		sig[last] = 27 + byte(parity(sig[last]))
	case kind == chain.P256 && sig[last] != 0:
		sig[last] = 1
	}
	return nil
}

// settle normalizes a signature of any kind, in place.
func settle(sig []byte) error {
	if isKeychain(sig) {
		sig = sig[accountEnd:]
	}
	return settlePrimitive(sig)
}

// recoverSecp256k1 returns the account whose key signed, from the 64 bytes r s. Only the lower
// s is accepted (EIP-2).
func recoverSecp256k1(rs []byte, parity uint64, digest chain.Hash) (chain.Address, error) {
	if parity > 1 {
		return chain.Address{}, errors.New("the recovery parity is neither 0 nor 1")
	}
	r, s := new(big.Int).SetBytes(rs[:32]), new(big.Int).SetBytes(rs[32:])
	if !crypto.ValidateSignatureValues(byte(parity), r, s, true) {
		return chain.Address{}, errSecp256k1Values
	}
	key, err := crypto.Ecrecover(digest[:], append(bytes.Clone(rs), byte(parity)))
	if err != nil {
		return chain.Address{}, errors.New("no key fits the signature")
	}
	return address(key[1:]), nil
}

var errSecp256k1Values = errors.New("r or s is zero or beyond the curve's order, or s is in its upper half (EIP-2)")

// parseP256 reads the 128 bytes r s x y. Only the lower s is accepted.
func parseP256(rsxy []byte) (key *ecdsa.PublicKey, r, s *big.Int, err error) {
	curve := elliptic.P256()
	r, s = new(big.Int).SetBytes(rsxy[:32]), new(big.Int).SetBytes(rsxy[32:64])
	switch order := curve.Params().N; {
	case r.Sign() == 0 || s.Sign() == 0 || r.Cmp(order) >= 0:
		return nil, nil, nil, errors.New("r or s is zero or beyond P-256's order")
	case s.Cmp(new(big.Int).Rsh(order, 1)) > 0:
		return nil, nil, nil, errors.New("s is in the upper half of P-256's order")
	}
	key, err = ecdsa.ParseUncompressedPublicKey(curve, append([]byte{0x04}, rsxy[64:]...))
	if err != nil {
		return nil, nil, nil, errors.New("the public key is not a point of P-256")
	}
	return key, r, s, nil
}

// verifyP256 returns the account of the public key in the 128 bytes r s x y, if that key
// signed.
func verifyP256(rsxy []byte, digest chain.Hash) (chain.Address, error) {
	key, r, s, err := parseP256(rsxy)
	if err != nil {
		return chain.Address{}, err
	}
	if !ecdsa.Verify(key, digest[:], r, s) {
		return chain.Address{}, errors.New("the P-256 signature does not fit")
	}
	return address(rsxy[64:]), nil
}

// address is the account of a public key, x y: the last 20 bytes of its hash.
func address(xy []byte) chain.Address {
	hash := chain.Keccak(xy)
	return chain.Address(hash[12:])
}

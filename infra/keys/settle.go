package keys

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/asn1"
	"errors"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// p256Type is the first byte of a P-256 signature on Tempo. Source: tempoxyz/tempo,
// crates/primitives/src/transaction/tt_signature.rs.
const p256Type = 0x01

// errForm is an answer in no signature's form. Its bytes appear in no output.
var errForm = errors.New("the response is not a signature")

// settle verifies a signer's answer and converts it to the single form that chains accept. It
// trusts only r and s: a higher s is as valid as the lower one (EIP-2 accepts only the lower),
// and public key recovery shows the matching v.
func (s *Signer) settle(answer []byte, digest chain.Hash) ([]byte, error) {
	r, sv, err := parse(answer)
	if err != nil {
		return nil, err
	}
	order := crypto.S256().Params().N
	if s.kind == chain.P256 {
		order = elliptic.P256().Params().N
	}
	if r.Sign() <= 0 || sv.Sign() <= 0 || r.Cmp(order) >= 0 || sv.Cmp(order) >= 0 {
		return nil, errForm
	}
	if half := new(big.Int).Rsh(order, 1); sv.Cmp(half) > 0 {
		sv.Sub(order, sv)
	}
	if s.kind == chain.P256 {
		return s.settleP256(r, sv, digest)
	}
	return s.settleSecp256k1(r, sv, digest)
}

func (s *Signer) settleSecp256k1(r, sv *big.Int, digest chain.Hash) ([]byte, error) {
	sig := make([]byte, crypto.SignatureLength)
	r.FillBytes(sig[:32])
	sv.FillBytes(sig[32:64])
	var others []chain.Address
	for parity := range byte(2) {
		sig[crypto.RecoveryIDOffset] = parity
		key, err := crypto.Ecrecover(digest[:], sig)
		switch {
		case err != nil: // no point has this x
		case bytes.Equal(key[1:], s.public):
			return sig, nil
		default:
			others = append(others, addressOf(key[1:]))
		}
	}
	if len(others) == 0 {
		return nil, errForm
	}
	return nil, ErrWrongKey.Because("requested a signature by %s, got a signature by another key, %s", s.address, either(others))
}

// either lists the accounts that may have made a signature: without a trusted v there are two.
func either(accounts []chain.Address) string {
	text := accounts[0].String()
	for _, a := range accounts[1:] {
		text += " or " + a.String()
	}
	return text
}

func (s *Signer) settleP256(r, sv *big.Int, digest chain.Hash) ([]byte, error) {
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append([]byte{4}, s.public...))
	if err != nil {
		return nil, ErrBadKey.Because("the public key of %s is not a point of P-256", s.address)
	}
	if !ecdsa.Verify(key, digest[:], r, sv) {
		return nil, ErrWrongKey.Because("requested a signature by %s, got a signature by another key", s.address)
	}
	sig := make([]byte, 1+32+32, 1+4*32+1)
	sig[0] = p256Type
	r.FillBytes(sig[1:33])
	sv.FillBytes(sig[33:65])
	return append(append(sig, s.public...), 0), nil
}

// parse reads r and s from 64 bytes, from 65 with a v at the end, or from DER (RFC 3279,
// section 2.2.3), the form of key vaults.
func parse(answer []byte) (r, s *big.Int, err error) {
	if n := len(answer); n == 64 || n == 65 {
		return new(big.Int).SetBytes(answer[:32]), new(big.Int).SetBytes(answer[32:64]), nil
	}
	var der struct{ R, S *big.Int }
	rest, err := asn1.Unmarshal(answer, &der)
	if err != nil || len(rest) > 0 {
		return nil, nil, errForm
	}
	return der.R, der.S, nil
}

// addressOf is the account of a public key, x y: the last 20 bytes of its hash.
func addressOf(xy []byte) chain.Address {
	hash := chain.Keccak(xy)
	return chain.Address(hash[12:])
}

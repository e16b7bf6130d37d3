package keystest

import (
	"crypto/elliptic"
	"crypto/rand"
	"encoding/asn1"
	"encoding/pem"
	"io"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// curve is the common interface of the elliptic curves used here.
type curve interface {
	ScalarBaseMult(k []byte) (x, y *big.Int)
}

// Key is a test's private key. It signs as in the textbook, with a random k, and independently
// of the signers under test.
type Key struct {
	Kind   chain.SignatureKind
	Secret []byte
	Random io.Reader // source of k; nil means the machine's
}

// parts returns the curve and its order.
func (k *Key) parts() (curve, *big.Int) {
	if k.Kind == chain.P256 {
		return elliptic.P256(), elliptic.P256().Params().N
	}
	return crypto.S256(), crypto.S256().Params().N
}

// Public is x y.
func (k *Key) Public() []byte {
	c, _ := k.parts()
	x, y := c.ScalarBaseMult(k.Secret)
	public := make([]byte, 64)
	x.FillBytes(public[:32])
	y.FillBytes(public[32:])
	return public
}

// Address is the key's account.
func (k *Key) Address() chain.Address {
	hash := chain.Keccak(k.Public())
	return chain.Address(hash[12:])
}

// SPKI is the public key in the form of key management services: the DER of a
// SubjectPublicKeyInfo. Sources: RFC 5480, section 2; SEC 2, appendix A.2.1.
func (k *Key) SPKI() []byte {
	curve := asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7} // P-256
	if k.Kind == chain.Secp256k1 {
		curve = asn1.ObjectIdentifier{1, 3, 132, 0, 10}
	}
	type algorithm struct{ Algorithm, Curve asn1.ObjectIdentifier }
	der, err := asn1.Marshal(struct {
		Algorithm algorithm
		Key       asn1.BitString
	}{
		algorithm{asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}, curve}, // id-ecPublicKey
		asn1.BitString{Bytes: append([]byte{4}, k.Public()...), BitLength: 65 * 8},
	})
	if err != nil {
		panic(err)
	}
	return der
}

// PEM is the public key as a PEM file.
func (k *Key) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.SPKI()}))
}

// Sign signs a digest, unless trouble names another key. It applies the parts of trouble that
// concern signatures. Source: SEC 1, section 4.1.3.
func (k *Key) Sign(digest chain.Hash, trouble Trouble) []byte {
	if trouble.By != nil {
		k = trouble.By
	}
	c, order := k.parts()
	random := k.Random
	if random == nil {
		random = rand.Reader
	}
	nonce, err := rand.Int(random, new(big.Int).Sub(order, big.NewInt(1)))
	if err != nil {
		panic(err)
	}
	nonce.Add(nonce, big.NewInt(1))
	r, y := c.ScalarBaseMult(nonce.Bytes())
	s := new(big.Int).Mul(r, new(big.Int).SetBytes(k.Secret))
	s.Add(s, new(big.Int).SetBytes(digest[:]))
	s.Mul(s, new(big.Int).ModInverse(nonce, order)).Mod(s, order)
	v := byte(y.Bit(0))
	high := s.Cmp(new(big.Int).Rsh(order, 1)) > 0
	if high && trouble.LowS || !high && trouble.HighS {
		s.Sub(order, s)
		v ^= 1
	}
	return written(r, s, v, trouble.Form)
}

// written encodes a signature.
func written(r, s *big.Int, v byte, form Form) []byte {
	if form == DER {
		der, err := asn1.Marshal(struct{ R, S *big.Int }{r, s})
		if err != nil {
			panic(err)
		}
		return der
	}
	rs := make([]byte, 64)
	r.FillBytes(rs[:32])
	s.FillBytes(rs[32:])
	switch form {
	case RSV0:
		return append(rs, v)
	case RSWrongV:
		return append(rs, 27+(v^1))
	case RSStrangeV:
		return append(rs, 99)
	case RS:
		return rs
	default:
		return append(rs, 27+v)
	}
}

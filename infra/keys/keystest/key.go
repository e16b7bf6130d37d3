package keystest

import (
	"crypto/elliptic"
	"crypto/rand"
	"encoding/asn1"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// curve is what elliptic curves have in common here.
type curve interface {
	ScalarBaseMult(k []byte) (x, y *big.Int)
}

// Key is a private key of a test's. It signs by the book, with a k drawn at random,
// and independently of the signers under test.
type Key struct {
	Kind   chain.SignatureKind
	Secret []byte
}

// parts are the curve and its order.
func (k *Key) parts() (curve, *big.Int) {
	if k.Kind == chain.P256 {
		return elliptic.P256(), elliptic.P256().Params().N
	}
	return crypto.S256(), crypto.S256().Params().N
}

// public is x y.
func (k *Key) public() []byte {
	c, _ := k.parts()
	x, y := c.ScalarBaseMult(k.Secret)
	public := make([]byte, 64)
	x.FillBytes(public[:32])
	y.FillBytes(public[32:])
	return public
}

// Address is the account.
func (k *Key) Address() chain.Address {
	hash := chain.Keccak(k.public())
	return chain.Address(hash[12:])
}

// sign signs a digest. Source: SEC 1, section 4.1.3.
func (k *Key) sign(digest chain.Hash, trouble Trouble) []byte {
	c, order := k.parts()
	nonce, err := rand.Int(rand.Reader, new(big.Int).Sub(order, big.NewInt(1)))
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

// written writes a signature down.
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

package keys_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
)

// custody is the signer of a key held by the test.
func custody(t *testing.T, held *keystest.Key, trouble keystest.Trouble) *keys.Signer {
	t.Helper()
	s, err := keys.InCustody(held.SPKI(), func(_ context.Context, digest chain.Hash) ([]byte, error) { return held.Sign(digest, trouble), nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCustodyContract(t *testing.T) {
	for _, kind := range []chain.SignatureKind{chain.Secp256k1, chain.P256} {
		for name, trouble := range map[string]keystest.Trouble{"higher s": {HighS: true, Form: keystest.DER}, "r s": {Form: keystest.RS}} {
			t.Run(name+", "+string(kind), func(t *testing.T) {
				held := keyOf(kind, secretB)
				keystest.Contract(t, keystest.Case{
					Open:    func(t *testing.T) *keys.Signer { return custody(t, held, trouble) },
					Address: held.Address(), Kind: kind, Secrets: secrets,
				})
			})
		}
	}
}

func TestCustodyTrouble(t *testing.T) {
	held := keyOf(chain.Secp256k1, secretA)
	s := custody(t, held, keystest.Trouble{By: keyOf(chain.Secp256k1, secretB), Form: keystest.DER})
	_, err := s.Sign(t.Context(), []byte("payload"))
	refusal(t, err, keys.ErrWrongKey, accountB.String())

	away := errors.New("away")
	s, err = keys.InCustody([]byte(held.PEM()), func(context.Context, chain.Hash) ([]byte, error) { return nil, away })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sign(t.Context(), []byte("payload")); !errors.Is(err, away) || s.Address() != accountA {
		t.Errorf("%s: %v, want %v", s, err, away)
	}
	s.Close()
	if _, err := s.Sign(t.Context(), []byte("payload")); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// A public key is on one of the two curves, or is refused. Go's library encodes P-256 keys in
// the form that we read.
func TestPublicKeys(t *testing.T) {
	held := keyOf(chain.P256, secretA)
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append([]byte{4}, held.Public()...))
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	s, err := keys.InCustody(der, nil)
	if err != nil || s.Address() != held.Address() || s.Kind() != chain.P256 {
		t.Fatalf("%v (%v), want %s", s, err, held.Address())
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := x509.MarshalPKIXPublicKey(other.Public())
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int, to byte) []byte {
		again := bytes.Clone(der)
		again[at] = to
		return again
	}
	const none, off = "must be an elliptic curve key", "not a point of its curve, p256"
	for _, c := range []struct {
		says string
		text []byte
	}{
		{none, nil},
		{none, der[:len(der)-1]},
		{none, append(bytes.Clone(der), 0)},
		{none, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("nonsense")})},
		{"curve 1.3.132.0.34", p384},
		{off, changed(len(der)-1, der[len(der)-1]^1)},
		{off, changed(len(der)-65, 2)},
	} {
		_, err := keys.InCustody(c.text, nil)
		refusal(t, err, keys.ErrBadKey, c.says)
	}
}

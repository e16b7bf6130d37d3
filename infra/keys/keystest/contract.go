// Package keystest contains the tests of signers: the contract of every signer ([Contract]),
// the search for key material in a program's output ([Secrets]), and doubles of signing servers
// ([Double]), including a remote signer ([Server]).
package keystest

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// Case is a signer to be tested by the contract.
type Case struct {
	// Open returns a new signer for each part of the contract.
	Open func(t *testing.T) *keys.Signer
	// Address and Kind are the account for which it should sign.
	Address chain.Address
	Kind    chain.SignatureKind
	// Secrets must not appear in any output.
	Secrets Secrets
}

// Contract is the contract of every signer, wherever its key is.
func Contract(t *testing.T, c Case) {
	t.Run("signs in its account's name", c.signs)
	t.Run("signs for many at once", c.signsAtOnce)
	t.Run("signs neither nothing nor too much", c.refusesPayloads)
	t.Run("signs for nobody who has left", c.mindsItsCaller)
	t.Run("signs no more when closed", c.closes)
	t.Run("is printed without its key", c.isPrinted)
}

// payloads have all sizes, and are many: half of all random signatures have the higher s.
func payloads() [][]byte {
	var all [][]byte
	for i := range 40 {
		all = append(all, bytes.Repeat([]byte{0x02, byte(i)}, 1+i*i))
	}
	return append(all, []byte{0}, bytes.Repeat([]byte{0xff}, keys.MaxPayload))
}

func (c Case) signs(t *testing.T) {
	s := c.Open(t)
	if s.Address() != c.Address || s.Kind() != c.Kind {
		t.Fatalf("it is the signer of %s (%s), want %s (%s)", s.Address(), s.Kind(), c.Address, c.Kind)
	}
	if hash := chain.Keccak(s.PublicKey()); !bytes.Equal(hash[12:], c.Address[:]) {
		t.Errorf("its public key does not belong to its address")
	}
	for _, payload := range payloads() {
		kept := bytes.Clone(payload)
		sig, err := s.Sign(t.Context(), payload)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(payload, kept) {
			t.Fatal("it has changed the payload")
		}
		c.check(t, sig, payload)
	}
}

// check verifies a signature with a verifier independent of the signers', and checks that it
// has its single valid form.
func (c Case) check(t *testing.T, sig, payload []byte) {
	t.Helper()
	order, s := crypto.S256().Params().N, []byte(nil)
	switch c.Kind {
	case chain.Secp256k1:
		if len(sig) != 65 || sig[64] > 1 {
			t.Fatalf("%d bytes that end in %d, want 65 with v of 0 or 1", len(sig), sig[len(sig)-1])
		}
		s = sig[32:64]
	case chain.P256:
		if len(sig) != 130 || sig[0] != 1 || sig[129] != 0 {
			t.Fatalf("%d bytes from %d to %d, want 130 from 1 to 0", len(sig), sig[0], sig[len(sig)-1])
		}
		order, _ = new(big.Int).SetString("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", 16)
		s = sig[33:65]
	}
	if new(big.Int).SetBytes(s).Cmp(new(big.Int).Rsh(order, 1)) > 0 {
		t.Error("s is in the upper half of the curve's order")
	}
	account, kind, err := tempo.VerifyPrimitive(sig, chain.Keccak(payload))
	if err != nil || account != c.Address || kind != c.Kind {
		t.Errorf("signed by %s (%s, %v), want %s (%s)", account, kind, err, c.Address, c.Kind)
	}
}

func (c Case) signsAtOnce(t *testing.T) {
	s := c.Open(t)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			payload := []byte{2, byte(i)}
			sig, err := s.Sign(t.Context(), payload)
			if err != nil {
				t.Error(err)
				return
			}
			if account, _, err := tempo.VerifyPrimitive(sig, chain.Keccak(payload)); err != nil || account != c.Address {
				t.Errorf("signed by %s (%v), want %s", account, err, c.Address)
			}
		})
	}
	all.Wait()
}

func (c Case) refusesPayloads(t *testing.T) {
	s := c.Open(t)
	for _, payload := range [][]byte{nil, {}, make([]byte, keys.MaxPayload+1)} {
		if sig, err := s.Sign(t.Context(), payload); !errors.Is(err, keys.ErrBadPayload) || sig != nil {
			t.Errorf("of %d bytes it gives %x and %v, want %v", len(payload), sig, err, keys.ErrBadPayload)
		}
	}
}

func (c Case) mindsItsCaller(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	leave()
	sig, err := c.Open(t).Sign(ctx, []byte{1})
	if refusal := eventlog.Refusal(""); !errors.Is(err, context.Canceled) || errors.As(err, &refusal) || sig != nil {
		t.Errorf("it gives %x and %v, want %v", sig, err, context.Canceled)
	}
}

func (c Case) closes(t *testing.T) {
	s := c.Open(t)
	s.Close()
	s.Close()
	sig, err := s.Sign(t.Context(), []byte{1})
	if refusal := eventlog.Refusal(""); !errors.Is(err, eventlog.ErrClosed) || errors.As(err, &refusal) || sig != nil {
		t.Errorf("closed, it gives %x and %v, want %v", sig, err, eventlog.ErrClosed)
	}
	c.Secrets.Printed(t, err)
}

func (c Case) isPrinted(t *testing.T) {
	s := c.Open(t)
	if len(c.Secrets) == 0 {
		t.Fatal("the case names no secrets to look for")
	}
	c.Secrets.Printed(t, s)
	c.Secrets.Printed(t, *s)
	c.Secrets.Printed(t, struct {
		Exported *keys.Signer
		hidden   *keys.Signer
		many     []*keys.Signer
	}{s, s, []*keys.Signer{s}})
	if got, want := s.String(), "signer("+string(c.Kind)+" "+c.Address.String()+")"; got != want {
		t.Errorf("it is printed as %s, want %s", got, want)
	}
}

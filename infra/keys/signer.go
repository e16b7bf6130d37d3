// Package keys holds signers: accounts' keys, or the way to somebody who has them.
// All of them are a [*Signer], whether the key lies in an encrypted file
// ([Keystore]), in the environment ([Environment], for development only), in a PEM
// file ([P256File]) or with a remote signer ([Remote]).
//
// Two rules hold for every signer. What it gives was verified: it is a signature of
// the very digest, by the very account, in the one form that chains take. And key
// material leaves it in no way: not in a log, an error, a panic's text or a printed
// value, however it is printed.
//
// A signature is no effect: asking twice does no harm as long as the first answer
// was not recorded. Who records signatures has to see to it that one and the same
// transaction is signed once; with a signer that draws its k at random, signing
// again gives another transaction hash.
package keys

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// MaxPayload is the most that is signed at once, in bytes: that of the largest
// transaction a pool takes, 128 KiB.
const MaxPayload = 128 << 10

// Signer signs in one account's name. It may be used by many goroutines at once.
type Signer struct {
	address chain.Address
	kind    chain.SignatureKind
	public  []byte // x and y, 32 bytes each
	// ask gives a signature of the payload, or of its digest, which is the same, in
	// any form that [Signer.settle] knows. It is a closure, as close is: no
	// reflection gets at what it holds.
	ask   func(ctx context.Context, payload []byte, digest chain.Hash) ([]byte, error)
	close func()
}

// Address is the account, derived from the public key.
func (s *Signer) Address() chain.Address { return s.address }

// Kind is the kind of key: [chain.Secp256k1] or [chain.P256].
func (s *Signer) Kind() chain.SignatureKind { return s.kind }

// PublicKey is x and y, 32 bytes each.
func (s *Signer) PublicKey() []byte { return bytes.Clone(s.public) }

// Sign signs the Keccak-256 of a payload: of an unsigned transaction's encoding,
// with its type byte. (The payload and not the digest, because a remote signer
// hashes by itself.) The signature has the form of Tempo's primitive signatures,
// with the lower s:
//
//	secp256k1   r s v        65 bytes, v is 0 or 1
//	P-256       1 r s x y 0  130 bytes: type, public key, not hashed a second time
//
// Errors: an [event.Refusal] of this package when asking again is of no use; one
// that is [event.ErrUnknown] when a remote signer was asked and no answer came,
// which leaves nothing behind; any other, among them [*Busy], is bad luck.
func (s *Signer) Sign(ctx context.Context, payload []byte) ([]byte, error) {
	if len(payload) == 0 || len(payload) > MaxPayload {
		return nil, ErrBadPayload.Because("%d bytes are not between 1 and %d", len(payload), MaxPayload)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("signer %s: %w", s.address, err)
	}
	digest := chain.Keccak(payload)
	answer, err := s.ask(ctx, payload, digest)
	if err != nil {
		return nil, fmt.Errorf("signer %s: %w", s.address, err)
	}
	return s.settle(answer, digest)
}

// Close forgets the key, as far as memory can be cleared; nothing is signed any
// more. It may be called more than once.
func (s *Signer) Close() { s.close() }

// String names the account, and so do the other ways of printing a signer.
func (s *Signer) String() string { return fmt.Sprintf("signer(%s %s)", s.kind, s.address) }

// Format prints the same whatever the verb.
func (s *Signer) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) } //nolint:errcheck // fmt has nowhere to put it

// GoString is what %#v prints.
func (s *Signer) GoString() string { return s.String() }

// LogValue is what a log shows.
func (s *Signer) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON gives the address and the kind.
func (s *Signer) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Address chain.Address       `json:"address"`
		Kind    chain.SignatureKind `json:"kind"`
	}{s.address, s.kind})
}

// closeAll closes signers that were opened before something went wrong.
func closeAll(signers []*Signer) {
	for _, s := range signers {
		s.Close()
	}
}

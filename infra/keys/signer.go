// Package keys holds signers: accounts' keys, or clients of services that hold them. All of
// them are a [*Signer], whether the key is in an encrypted file ([Keystore]), in the
// environment ([Environment], for development only), in a PEM file ([P256File]) or at a remote
// signer ([Remote]).
//
// Two rules hold for every signer. Its output was verified: it is a signature of this digest,
// by this account, in the single form that chains accept. And key material never leaves it: not
// in a log, an error, a panic's text or a printed value, in any format.
//
// Signing has no side effect: a request may be repeated as long as the first answer was not
// recorded. The caller that records signatures must make sure that each transaction is signed
// once: with a signer that draws k at random, signing again gives another transaction hash.
package keys

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// MaxPayload is the largest payload in bytes: a pool's largest transaction, 128 KiB.
const MaxPayload = 128 << 10

// Signer signs for one account. It is safe for concurrent use.
type Signer struct {
	address chain.Address
	kind    chain.SignatureKind
	public  []byte // x and y, 32 bytes each
	// ask returns a signature of the payload, or equally of its digest, in any form that
	// [Signer.settle] accepts. It is a closure, like close: reflection cannot reach its
	// variables.
	ask   func(ctx context.Context, payload []byte, digest chain.Hash) ([]byte, error)
	close func()
}

// Address is the account, derived from the public key.
func (s *Signer) Address() chain.Address { return s.address }

// Kind is the kind of key: [chain.Secp256k1] or [chain.P256].
func (s *Signer) Kind() chain.SignatureKind { return s.kind }

// PublicKey is x and y, 32 bytes each.
func (s *Signer) PublicKey() []byte { return bytes.Clone(s.public) }

// Sign signs the Keccak-256 of a payload, which is an unsigned transaction's encoding with its
// type byte. (It takes the payload, not the digest, because a remote signer hashes by itself.)
// The signature has the form of Tempo's primitive signatures, with the lower s:
//
//	secp256k1   r s v        65 bytes, v is 0 or 1
//	P-256       1 r s x y 0  130 bytes: type, public key, not hashed a second time
//
// Errors: an [eventlog.Refusal] of this package if a retry is useless; an error that is
// [eventlog.ErrUnknown] if a remote signer was asked and did not answer, which has no effect; any
// other error, including [*Busy], is transient.
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

// Close erases the key, as far as memory can be cleared; the signer signs no more. It may be
// called more than once.
func (s *Signer) Close() { s.close() }

// String shows the account, and so do all other ways of printing a signer.
func (s *Signer) String() string { return fmt.Sprintf("signer(%s %s)", s.kind, s.address) }

// Format prints String for every verb.
func (s *Signer) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) } //nolint:errcheck // fmt has nowhere to put it

// GoString implements fmt.GoStringer with String.
func (s *Signer) GoString() string { return s.String() }

// LogValue logs String.
func (s *Signer) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON writes the address and the kind.
func (s *Signer) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Address chain.Address       `json:"address"`
		Kind    chain.SignatureKind `json:"kind"`
	}{s.address, s.kind})
}

// closeAll closes signers opened before an error.
func closeAll(signers []*Signer) {
	for _, s := range signers {
		s.Close()
	}
}

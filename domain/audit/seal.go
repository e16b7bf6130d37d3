package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Stream is the name of the stream of seals.
const Stream eventlog.Stream = "audit-seals"

// MarksMax bounds the number of events between two seals.
const MarksMax = 10_000

// Event is a fact about the log.
//
//sumtype:decl
type Event interface{ fact() }

// Sealed: Hash is the hash of the log up to Through.
type Sealed struct {
	// Through is the position of the last event under the seal. Since is Through of the seal
	// before, 0 for the first.
	Since   eventlog.Position `json:"since"`
	Through eventlog.Position `json:"through"`
	// Count is the number of events up to Through; Hash covers all of them.
	Count uint64 `json:"count"`
	Hash  Digest `json:"hash"`
	// Marks are the first [MarkBytes] bytes of the leaf of each event after Since.
	Marks []byte    `json:"marks"`
	At    time.Time `json:"at"` // by the sealer's clock, to the microsecond
	// Key is the signer's key. Signature signs [Sealed.Message].
	Key       Key       `json:"key"`
	Signature Signature `json:"signature"`
}

func (Sealed) fact() {}

// Codec maps event types to stored names, which never change.
func Codec() eventlog.Codec[Event] {
	return eventlog.NewCodec(eventlog.As[Event, Sealed]("audit.sealed.v1"))
}

// Key is an ed25519 public key (RFC 8032).
type Key [ed25519.PublicKeySize]byte

// Signature is an ed25519 signature.
type Signature [ed25519.SignatureSize]byte

func (k Key) String() string                      { return hex.EncodeToString(k[:]) }
func (k Key) MarshalText() ([]byte, error)        { return hex.AppendEncode(nil, k[:]), nil }
func (k *Key) UnmarshalText(b []byte) error       { return unhex(k[:], b) }
func (s Signature) MarshalText() ([]byte, error)  { return hex.AppendEncode(nil, s[:]), nil }
func (s *Signature) UnmarshalText(b []byte) error { return unhex(s[:], b) }

// Message returns the signed bytes: the fields sealDomain, since, through, count, hash, the
// SHA-256 of the marks, the time in microseconds since 1970, and the key, each after its length
// as in a [Digest]. Numbers are big-endian uint64.
func (s Sealed) Message() []byte {
	marks := sha256.Sum256(s.Marks)
	var b []byte
	b = field(b, sealDomain)
	b = number(b, uint64(s.Since))
	b = number(b, uint64(s.Through))
	b = number(b, s.Count)
	b = field(b, s.Hash[:])
	b = field(b, marks[:])
	b = number(b, uint64(s.At.UnixMicro()))
	return field(b, s.Key[:])
}

// Genuine reports whether the signature is valid for the seal's key.
func (s Sealed) Genuine() bool {
	return ed25519.Verify(s.Key[:], s.Message(), s.Signature[:])
}

// Signer signs seals. It exposes only its public key.
type Signer struct{ private ed25519.PrivateKey }

// NewSigner returns a signer with 32 secret bytes, the seed of RFC 8032.
func NewSigner(seed []byte) (Signer, error) {
	if len(seed) != ed25519.SeedSize {
		return Signer{}, fmt.Errorf("a seed of %d bytes, not %d", len(seed), ed25519.SeedSize)
	}
	return Signer{ed25519.NewKeyFromSeed(seed)}, nil
}

// Key returns the public key.
func (s Signer) Key() Key {
	return Key(s.private.Public().(ed25519.PublicKey)) //nolint:errcheck // what it is
}

// Sign sets the key and the signature.
func (s Signer) Sign(seal Sealed) Sealed {
	seal.Key = s.Key()
	seal.Signature = Signature(ed25519.Sign(s.private, seal.Message()))
	return seal
}

// String keeps the secret out of logs.
func (s Signer) String() string { return "signer " + s.Key().String() }

// GoString returns [Signer.String].
func (s Signer) GoString() string { return s.String() }

// State is the last seal; the zero State is a log without a seal.
type State struct{ Last Sealed }

// Seal is the command to append a seal.
type Seal struct{ Sealed }

// Errors of the sealer.
var (
	errOutOfPlace = errors.New("the seal does not follow the last one")
	errMarks      = errors.New("a seal's marks are invalid")
)

// Decide accepts a seal that follows the last one. Any other seal is a mistake of the sealer.
func (s State) Decide(c Seal) ([]Event, error) {
	added := uint64(len(c.Marks) / MarkBytes)
	switch {
	case c.Since != s.Last.Through || c.Through <= c.Since || c.Count != s.Last.Count+added:
		return nil, errOutOfPlace
	case added == 0 || added > MarksMax || len(c.Marks)%MarkBytes != 0:
		return nil, errMarks
	case !c.Genuine():
		return nil, errors.New("a seal's signature is invalid")
	}
	return []Event{c.Sealed}, nil
}

// Evolve applies one event.
func (s State) Evolve(e Event) State {
	switch e := e.(type) {
	case Sealed:
		return State{e}
	}
	panic(fmt.Sprintf("audit: unknown event %T", e))
}

package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Stream holds the seals of a log.
const Stream event.Stream = "audit-seals"

// MarksMax bounds how many events one seal holds marks of.
const MarksMax = 10_000

// Event is a fact about the log.
//
//sumtype:decl
type Event interface{ fact() }

// Sealed: up to a position the log is what the hash says.
type Sealed struct {
	// Through is the position of the last event that the seal witnesses, Since that of
	// the seal before, 0 for the first.
	Since   event.Position `json:"since"`
	Through event.Position `json:"through"`
	// Count is how many events there are up to Through, and Hash runs over them all.
	Count uint64 `json:"count"`
	Hash  Digest `json:"hash"`
	// Marks are the first [MarkBytes] bytes of the leaf of each event after Since.
	Marks []byte    `json:"marks"`
	At    time.Time `json:"at"` // by the clock of who sealed, to the microsecond
	// Key is who signed, and Signature what was signed; see [Sealed.Message].
	Key       Key       `json:"key"`
	Signature Signature `json:"signature"`
}

func (Sealed) fact() {}

// Codec names the events, for ever.
func Codec() event.Codec[Event] {
	return event.NewCodec(event.As[Event, Sealed]("audit.sealed.v1"))
}

// Key is an ed25519 public key (RFC 8032).
type Key [ed25519.PublicKeySize]byte

// Signature is one of ed25519.
type Signature [ed25519.SignatureSize]byte

func (k Key) String() string                      { return hex.EncodeToString(k[:]) }
func (k Key) MarshalText() ([]byte, error)        { return hex.AppendEncode(nil, k[:]), nil }
func (k *Key) UnmarshalText(b []byte) error       { return unhex(k[:], b) }
func (s Signature) MarshalText() ([]byte, error)  { return hex.AppendEncode(nil, s[:]), nil }
func (s *Signature) UnmarshalText(b []byte) error { return unhex(s[:], b) }

// Message is what is signed: the fields sealDomain, since, through, count, hash, the
// SHA-256 of the marks, the time in microseconds since 1970, and the key, each preceded
// by its length as in a [Digest]. Numbers are big-endian uint64.
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

// Genuine reports whether the key that a seal names has signed it.
func (s Sealed) Genuine() bool {
	return ed25519.Verify(s.Key[:], s.Message(), s.Signature[:])
}

// Signer seals. It shows its public key only.
type Signer struct{ private ed25519.PrivateKey }

// NewSigner makes a signer of 32 secret bytes, the seed of RFC 8032.
func NewSigner(seed []byte) (Signer, error) {
	if len(seed) != ed25519.SeedSize {
		return Signer{}, fmt.Errorf("a seed of %d bytes, not %d", len(seed), ed25519.SeedSize)
	}
	return Signer{ed25519.NewKeyFromSeed(seed)}, nil
}

// Key is the public key.
func (s Signer) Key() Key {
	return Key(s.private.Public().(ed25519.PublicKey)) //nolint:errcheck // what it is
}

// Sign fills in who seals and the signature.
func (s Signer) Sign(seal Sealed) Sealed {
	seal.Key = s.Key()
	seal.Signature = Signature(ed25519.Sign(s.private, seal.Message()))
	return seal
}

// String keeps the secret out of logs.
func (s Signer) String() string { return "signer " + s.Key().String() }

// GoString is [Signer.String].
func (s Signer) GoString() string { return s.String() }

// State is the last seal; the zero State is a log without one.
type State struct{ Last Sealed }

// Seal is the wish to append a seal.
type Seal struct{ Sealed }

// What is refused.
var (
	errOutOfPlace = errors.New("the seal does not follow the last one")
	errMarks      = errors.New("a seal's marks do not fit")
)

// Decide takes a seal that follows the last one. Another is the mistake of who seals.
func (s State) Decide(c Seal) ([]Event, error) {
	added := uint64(len(c.Marks) / MarkBytes)
	switch {
	case c.Since != s.Last.Through || c.Through <= c.Since || c.Count != s.Last.Count+added:
		return nil, errOutOfPlace
	case added == 0 || added > MarksMax || len(c.Marks)%MarkBytes != 0:
		return nil, errMarks
	case !c.Genuine():
		return nil, errors.New("a seal's signature does not fit")
	}
	return []Event{c.Sealed}, nil
}

// Evolve adds one fact.
func (s State) Evolve(e Event) State {
	switch e := e.(type) {
	case Sealed:
		return State{e}
	}
	panic(fmt.Sprintf("audit: unknown event %T", e))
}

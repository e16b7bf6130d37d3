// Package audit proves a log's integrity. Seals are signed statements of the log's content up to
// a position. A check verifies a log against its links and seals.
//
// A seal's hash covers every event from the log's first on: content, order and times. Its marks,
// a few bytes of each event's digest, show which event differs.
package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Digest is the SHA-256 of fields, each after its length in bytes as a big-endian uint32. The
// first field is the kind of digest.
type Digest [sha256.Size]byte

// The kinds of digest.
const (
	leafDomain     = "watchtower.audit.leaf.v1"
	unlinkedDomain = "watchtower.audit.leaf.unlinked.v1"
	runDomain      = "watchtower.audit.run.v1"
	sealDomain     = "watchtower.audit.seal.v1"
)

// MarkBytes is the length of an event's mark in a seal.
const MarkBytes = 4

// Leaf is the digest of a stored event: leafDomain, position, stream, version, link, and time in
// microseconds since 1970. Numbers are big-endian uint64. The link covers the content. For an
// event without a link, [eventlog.Recorded.Linked] computes it, and the first field is
// unlinkedDomain.
func Leaf(r eventlog.Recorded) Digest {
	link := r.Linked()
	b := make([]byte, 0, 512)
	if r.Meta.Link.IsZero() {
		b = field(b, unlinkedDomain)
	} else {
		b = field(b, leafDomain)
	}
	b = number(b, uint64(r.Position))
	b = field(b, r.Stream)
	b = number(b, uint64(r.Version))
	b = field(b, link[:])
	b = number(b, uint64(r.At.UnixMicro()))
	return sha256.Sum256(b)
}

// Next returns the hash of a log with hash d after one more event: runDomain, d, leaf. The zero
// Digest is the hash of an empty log.
func (d Digest) Next(leaf Digest) Digest {
	b := make([]byte, 0, 128)
	b = field(b, runDomain)
	b = field(b, d[:])
	b = field(b, leaf[:])
	return sha256.Sum256(b)
}

// Mark returns the leaf's mark in a seal.
func (d Digest) Mark() [MarkBytes]byte { return [MarkBytes]byte(d[:MarkBytes]) }

func field[T ~string | ~[]byte](b []byte, content T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(content)))
	return append(b, content...)
}

func number(b []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), n)
}

// String returns the digest in lower-case hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

func (d *Digest) UnmarshalText(b []byte) error { return unhex(d[:], b) }

// unhex decodes hex digits into a buffer of the exact length.
func unhex(to, digits []byte) error {
	if len(digits) != hex.EncodedLen(len(to)) {
		return fmt.Errorf("it must be %d hex digits", hex.EncodedLen(len(to)))
	}
	if _, err := hex.Decode(to, digits); err != nil {
		return fmt.Errorf("it must be %d hex digits", hex.EncodedLen(len(to)))
	}
	return nil
}

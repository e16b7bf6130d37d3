package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Link is a digest of an event and of the link before it in its stream. To alter, remove or
// insert an event, one has to recompute every later link of the stream. The zero Link precedes a
// stream's first event, and marks events that were recorded before links existed.
type Link [sha256.Size]byte

// linkDomain keeps links distinct from other digests.
const linkDomain = "watchtower.event.link.v1"

// linkRoom is the buffer size in bytes for a usual event's digest input. A larger event costs an
// allocation.
const linkRoom = 2048

// Next returns the link of the event after link l, or of the stream's first event if l is zero.
// It is the SHA-256 over linkDomain, l, stream, version, id, name, data, correlation, causation,
// actor and trace. Each field follows its length in bytes as a big-endian uint32; the version is
// a big-endian uint64. The event's own Link is left out, and so are its position and time, which
// only a store knows.
func (l Link) Next(stream Stream, version Version, e Event) Link {
	b := make([]byte, 0, linkRoom)
	b = field(b, linkDomain)
	b = field(b, l[:])
	b = field(b, stream)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(version))
	b = field(b, e.ID[:])
	b = field(b, e.Name)
	b = field(b, e.Data)
	b = field(b, e.Meta.Correlation[:])
	b = field(b, e.Meta.Causation[:])
	b = field(b, e.Meta.Actor)
	b = field(b, e.Meta.Trace)
	return sha256.Sum256(b)
}

func field[T ~string | ~[]byte](b []byte, content T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(content)))
	return append(b, content...)
}

// Linked returns the link to pass on to the stream's next event. For an event recorded before
// links existed, it is computed as if the event were the first of its stream.
func (r Recorded) Linked() Link {
	if r.Meta.Link.IsZero() {
		return Link{}.Next(r.Stream, r.Version, r.Event)
	}
	return r.Meta.Link
}

// IsZero reports whether the link is unset.
func (l Link) IsZero() bool { return l == Link{} }

// String returns the link in lower-case hexadecimal.
func (l Link) String() string { return hex.EncodeToString(l[:]) }

func (l Link) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, l[:]), nil }

func (l *Link) UnmarshalText(b []byte) error {
	if len(b) != hex.EncodedLen(len(l)) {
		return fmt.Errorf("link of %d digits, not %d", len(b), hex.EncodedLen(len(l)))
	}
	if _, err := hex.Decode(l[:], b); err != nil {
		return fmt.Errorf("link %q: %w", b, err)
	}
	return nil
}

package event

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Link ties an event to all that lie before it in its stream: it is a digest of the
// event and of the link before. Whoever alters, removes or inserts an event has to make
// every later link of the stream anew. The zero Link stands before a stream's first
// event, and on events that were recorded before there were links.
type Link [sha256.Size]byte

// linkDomain keeps a link from being taken for a digest of anything else.
const linkDomain = "watchtower.event.link.v1"

// linkRoom is how many bytes the digest of a usual event is over; a larger one costs
// an allocation.
const linkRoom = 2048

// Next is the link of the event that follows the one of link l, or the first of its
// stream if l is zero: SHA-256 over linkDomain, l, stream, version, id, name, data,
// correlation, causation, actor and trace, each preceded by its length in bytes as a
// big-endian uint32; the version is a big-endian uint64. The event's own Link, its
// position and its time, which only a store knows, take no part.
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

// Linked is the link that the stream's next event is made over. An event that was
// recorded before there were links has none of its own: one is made of it alone, as if
// it were the first.
func (r Recorded) Linked() Link {
	if r.Meta.Link.IsZero() {
		return Link{}.Next(r.Stream, r.Version, r.Event)
	}
	return r.Meta.Link
}

// IsZero reports whether there is no link.
func (l Link) IsZero() bool { return l == Link{} }

// String is the link in lower-case hexadecimal.
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

package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// A segment, all numbers big-endian:
//
//	header         headerBytes, see [header]
//	blocks         zstd frames, each with whole records of consecutive events
//	block index    blockBytes for each block, in order
//	stream index   streamBytes for each stream of each block, in order
//	footer         SHA-256 of header and both indexes, and a mark
//
// The block index holds the SHA-256 of each block, so the footer's vouches for every
// byte, and a single block can be checked without reading the others.
const (
	headerBytes = 256
	blockBytes  = 8 + 4 + 4 + 8 + 8 + 4 + sha256.Size
	streamBytes = 8 + 4
	footerBytes = sha256.Size + len(endMark)

	beginMark = "wtarch\x00\x01" // the last byte numbers the format
	endMark   = "wtarch\x00E"
)

// Limits of a block: what has to be read and unpacked for one event.
const (
	blockEvents = 512
	blockData   = 256 << 10
	blockMost   = 64 << 20 // bytes unpacked, before a block is taken for damaged
)

// header is a segment's first bytes.
type header struct {
	store            event.ID
	first, past      event.Position
	events           uint64
	from, to         int64             // microseconds since 1970
	contents         [sha256.Size]byte // of all blocks, unpacked
	indexAt          uint64            // where the block index begins
	blocks, mentions uint64            // entries of the indexes
}

func (h header) encode() []byte {
	b := append(make([]byte, 0, headerBytes), beginMark...)
	b = append(b, h.store[:]...)
	for _, n := range []uint64{uint64(h.first), uint64(h.past), h.events, uint64(h.from), uint64(h.to)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = append(b, h.contents[:]...)
	for _, n := range []uint64{h.indexAt, h.blocks, h.mentions} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return append(b, make([]byte, headerBytes-len(b))...)
}

func decodeHeader(b []byte) (h header, err error) {
	if len(b) != headerBytes || !bytes.HasPrefix(b, []byte(beginMark)) {
		return h, fmt.Errorf("%w: it does not begin as a segment of format 1 does", archive.ErrDamaged)
	}
	b = b[len(beginMark):]
	b = b[copy(h.store[:], b):]
	next := func() uint64 {
		n := binary.BigEndian.Uint64(b)
		b = b[8:]
		return n
	}
	h.first, h.past, h.events, h.from, h.to = event.Position(next()), event.Position(next()), next(), int64(next()), int64(next())
	b = b[copy(h.contents[:], b):]
	h.indexAt, h.blocks, h.mentions = next(), next(), next()
	return h, nil
}

// size is that of the whole file.
func (h header) size() uint64 {
	return h.indexAt + h.blocks*blockBytes + h.mentions*streamBytes + uint64(footerBytes)
}

// streamsAt is where the stream index begins.
func (h header) streamsAt() uint64 { return h.indexAt + h.blocks*blockBytes }

func (h header) segment(name string, hash archive.Digest) archive.Segment {
	return archive.Segment{
		Store: h.store, First: h.first, Past: h.past, Name: name, Hash: hash, Events: h.events, Bytes: h.size(),
		From: time.UnixMicro(h.from).UTC(), To: time.UnixMicro(h.to).UTC(),
	}
}

// block is one entry of the block index.
type block struct {
	at          uint64
	size, raw   uint32
	first, last event.Position // of its events
	events      uint32
	hash        [sha256.Size]byte
}

func (b block) append(out []byte) []byte {
	out = binary.BigEndian.AppendUint64(out, b.at)
	out = binary.BigEndian.AppendUint32(out, b.size)
	out = binary.BigEndian.AppendUint32(out, b.raw)
	out = binary.BigEndian.AppendUint64(out, uint64(b.first))
	out = binary.BigEndian.AppendUint64(out, uint64(b.last))
	out = binary.BigEndian.AppendUint32(out, b.events)
	return append(out, b.hash[:]...)
}

func decodeBlock(b []byte) (d block) {
	d.at, d.size, d.raw = binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	d.first, d.last = event.Position(binary.BigEndian.Uint64(b[16:])), event.Position(binary.BigEndian.Uint64(b[24:]))
	d.events = binary.BigEndian.Uint32(b[32:])
	copy(d.hash[:], b[36:])
	return d
}

// mention is one entry of the stream index: a stream has events in a block.
type mention struct {
	stream uint64 // from SHA-256 of the name; others may have the same
	block  uint32
}

func (m mention) append(out []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(out, m.stream), m.block)
}

func decodeMention(b []byte) mention {
	return mention{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}
}

func digest(stream event.Stream) uint64 {
	sum := sha256.Sum256([]byte(stream))
	return binary.BigEndian.Uint64(sum[:])
}

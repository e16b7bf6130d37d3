package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The format of a segment, all numbers big-endian:
//
//	header         headerBytes, see [header]
//	blocks         zstd frames, each with whole records of consecutive events
//	block index    blockBytes for each block, in order
//	stream index   streamBytes for each stream of each block, in order
//	footer         SHA-256 of header and both indexes, and a mark
//
// The block index holds the SHA-256 of each block. So the footer covers every byte, and a
// single block can be checked without reading the others.
const (
	headerBytes = 256
	blockBytes  = 8 + 4 + 4 + 8 + 8 + 4 + sha256.Size
	streamBytes = 8 + 4
	footerBytes = sha256.Size + len(endMark)

	beginMark = "wtarch\x00\x01" // the last byte is the format's version
	endMark   = "wtarch\x00E"
)

// Limits of a block, which is read and decompressed as a whole for each event in it.
const (
	blockEvents = 512
	blockData   = 256 << 10
	blockMost   = 64 << 20 // decompressed bytes above which a block counts as damaged
)

// header is the beginning of a segment.
type header struct {
	store            eventlog.ID
	first, past      eventlog.Position
	events           uint64
	from, to         int64             // microseconds since 1970
	contents         [sha256.Size]byte // of all blocks, decompressed
	indexAt          uint64            // offset of the block index
	blocks, mentions uint64            // numbers of index entries
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
	h.first, h.past, h.events, h.from, h.to = eventlog.Position(next()), eventlog.Position(next()), next(), int64(next()), int64(next())
	b = b[copy(h.contents[:], b):]
	h.indexAt, h.blocks, h.mentions = next(), next(), next()
	return h, nil
}

// size is the size of the whole file.
func (h header) size() uint64 {
	return h.indexAt + h.blocks*blockBytes + h.mentions*streamBytes + uint64(footerBytes)
}

// streamsAt is the offset of the stream index.
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
	first, last eventlog.Position // positions of its first and last event
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
	d.first, d.last = eventlog.Position(binary.BigEndian.Uint64(b[16:])), eventlog.Position(binary.BigEndian.Uint64(b[24:]))
	d.events = binary.BigEndian.Uint32(b[32:])
	copy(d.hash[:], b[36:])
	return d
}

// mention is one entry of the stream index: a block with events of a stream.
type mention struct {
	stream uint64 // from the SHA-256 of the name; not unique
	block  uint32
}

func (m mention) append(out []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(out, m.stream), m.block)
}

func decodeMention(b []byte) mention {
	return mention{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}
}

func digest(stream eventlog.Stream) uint64 {
	sum := sha256.Sum256([]byte(stream))
	return binary.BigEndian.Uint64(sum[:])
}

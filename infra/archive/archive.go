// Package archive keeps the log's old events in files, and reads files and store as one log.
//
// A segment is a file with all events of a range of positions, compressed, with an index of its
// streams. Any changed byte in it is detected. [Files] writes and reads segments. [Store]
// combines them with a store that has dropped their events.
package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Files are the segments in one shelf.
type Files struct {
	shelf Shelf
	crash func(point string)

	mu    sync.Mutex
	known map[archive.Digest]*index // of segments read before
}

// knownMost bounds how many segments' indexes are cached.
const knownMost = 256

// CrashPoints lists the points at which a test may end the process.
func CrashPoints() []string { return []string{"archive.written", "archive.named"} }

// NewFiles returns the segments in a shelf. crash may be nil.
func NewFiles(shelf Shelf, crash func(point string)) *Files {
	if crash == nil {
		crash = func(string) {}
	}
	return &Files{shelf: shelf, crash: crash, known: map[archive.Digest]*index{}}
}

// String names the shelf for people.
func (f *Files) String() string { return f.shelf.String() }

// index is a segment without its blocks.
type index struct {
	header
	blocks []block
}

// forget drops a segment's cached index.
func (f *Files) forget(hash archive.Digest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, hash)
}

// opened is an open segment, used by one reader.
type opened struct {
	*index
	blob Blob
	name string
}

// open opens a segment and checks that it is the listed one.
func (f *Files) open(ctx context.Context, s archive.Segment) (_ *opened, err error) {
	blob, err := f.shelf.Open(ctx, s.Name)
	if err != nil {
		return nil, named(s.Name, err)
	}
	f.mu.Lock()
	known := f.known[s.Hash]
	f.mu.Unlock()
	if known != nil {
		if uint64(blob.Size()) != known.size() {
			return nil, errors.Join(wholly(s, fmt.Errorf("%w: %d bytes, not %d", archive.ErrDamaged, blob.Size(), known.size())), blob.Close())
		}
		return &opened{known, blob, s.Name}, nil
	}
	found, hash, err := readIndex(blob)
	if err == nil && hash != s.Hash {
		err = fmt.Errorf("%w: the file was replaced: its hash is %s, recorded was %s", archive.ErrDamaged, hash, s.Hash)
	}
	if err != nil {
		return nil, errors.Join(wholly(s, err), blob.Close())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= knownMost {
		clear(f.known)
	}
	f.known[s.Hash] = found
	return &opened{found, blob, s.Name}, nil
}

// wholly marks a damaged segment none of whose events can be read.
func wholly(s archive.Segment, err error) error {
	if !errors.Is(err, archive.ErrDamaged) {
		return named(s.Name, err)
	}
	what := strings.TrimPrefix(err.Error(), archive.ErrDamaged.Error()+": ")
	return &archive.DamagedError{Segment: s.Name, First: s.First, Last: s.Past - 1, What: what}
}

// named adds a segment's name to an error.
func named(name string, err error) error { return fmt.Errorf("archive segment %s: %w", name, err) }

// readIndex reads header, indexes and footer, and checks that they match.
func readIndex(blob Blob) (*index, archive.Digest, error) {
	head := make([]byte, headerBytes)
	if err := readAt(blob, head, 0); err != nil {
		return nil, archive.Digest{}, err
	}
	h, err := decodeHeader(head)
	size := uint64(max(blob.Size(), 0))
	switch {
	case err != nil:
		return nil, archive.Digest{}, err
	// Each part is bounded first, so that the sum cannot overflow.
	case h.indexAt > size || h.blocks > size/blockBytes || h.mentions > size/streamBytes || h.size() != size:
		return nil, archive.Digest{}, fmt.Errorf("%w: its %d bytes differ from its header", archive.ErrDamaged, size)
	}
	rest := make([]byte, size-h.indexAt)
	if err := readAt(blob, rest, int64(h.indexAt)); err != nil {
		return nil, archive.Digest{}, err
	}
	indexes, footer := rest[:len(rest)-footerBytes], rest[len(rest)-footerBytes:]
	sum := sha256.New()
	sum.Write(head)
	sum.Write(indexes)
	hash := archive.Digest(footer)
	if !bytes.Equal(sum.Sum(nil), hash[:]) || string(footer[len(hash):]) != endMark {
		return nil, archive.Digest{}, fmt.Errorf("%w: header or indexes do not match the footer's hash", archive.ErrDamaged)
	}
	found := &index{header: h, blocks: make([]block, h.blocks)}
	for i := range found.blocks {
		found.blocks[i] = decodeBlock(indexes[i*blockBytes:])
	}
	return found, hash, nil
}

func readAt(blob Blob, into []byte, at int64) error {
	if n, err := blob.ReadAt(into, at); n < len(into) {
		if err == nil || errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: it ends early", archive.ErrDamaged)
		}
		return err
	}
	return nil
}

// unpacker decompresses blocks. One reader uses it and closes it.
func unpacker() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(blockMost))
}

// unpack reads one block and checks it.
func (o *opened) unpack(z *zstd.Decoder, i int) ([]byte, error) {
	b := o.blocks[i]
	packed := make([]byte, b.size)
	if err := readAt(o.blob, packed, int64(b.at)); err != nil {
		return nil, named(o.name, err)
	}
	raw, err := z.DecodeAll(packed, make([]byte, 0, min(b.raw, blockMost)))
	damaged := func(what string) error {
		return &archive.DamagedError{
			Segment: o.name, First: b.first, Last: b.last, Remains: remains(raw, b),
			What: fmt.Sprintf("block %d of %d: %s", i+1, len(o.blocks), what),
		}
	}
	if sha256.Sum256(packed) != b.hash {
		return nil, damaged("its bytes have changed")
	}
	if err != nil || len(raw) != int(b.raw) {
		return nil, damaged("it cannot be decompressed")
	}
	return raw, nil
}

// remains returns the events at the start of the readable part of a block.
func remains(raw []byte, b block) (events []eventlog.Recorded) {
	for next := b.first; next <= b.last && len(raw) > 0; next++ {
		r, rest, err := takeRecord(raw)
		if err != nil || r.Position != next {
			break
		}
		events, raw = append(events, r), rest
	}
	return events
}

// events reads one block's events.
func (o *opened) events(z *zstd.Decoder, i int) ([]eventlog.Recorded, error) {
	raw, err := o.unpack(z, i)
	if err != nil {
		return nil, err
	}
	return o.records(raw, i)
}

func (o *opened) records(raw []byte, i int) (_ []eventlog.Recorded, err error) {
	b := o.blocks[i]
	events := make([]eventlog.Recorded, 0, min(b.events, blockEvents))
	for left := raw; len(left) > 0; {
		var r eventlog.Recorded
		if r, left, err = takeRecord(left); err != nil {
			return nil, named(o.name, fmt.Errorf("%w: block %d of %d: %w", archive.ErrDamaged, i+1, len(o.blocks), err))
		}
		events = append(events, r)
	}
	if len(events) != int(b.events) || len(events) > 0 && (events[0].Position != b.first || events[len(events)-1].Position != b.last) {
		return nil, named(o.name, fmt.Errorf("%w: the events of block %d of %d differ from its index", archive.ErrDamaged, i+1, len(o.blocks)))
	}
	return events, nil
}

// Read yields a segment's events after a position, block by block.
func (f *Files) Read(ctx context.Context, s archive.Segment, after eventlog.Position) iter.Seq2[[]eventlog.Recorded, error] {
	return func(yield func([]eventlog.Recorded, error) bool) {
		err := f.each(ctx, s, func(o *opened, z *zstd.Decoder) (bool, error) {
			for i, b := range o.blocks {
				if b.last <= after {
					continue
				}
				if err := ctx.Err(); err != nil {
					return false, err
				}
				events, err := o.events(z, i)
				if err != nil {
					return false, err
				}
				for len(events) > 0 && events[0].Position <= after {
					events = events[1:]
				}
				if !yield(events, nil) {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// each opens a segment and runs do with it.
func (f *Files) each(ctx context.Context, s archive.Segment, do func(*opened, *zstd.Decoder) (bool, error)) error {
	o, err := f.open(ctx, s)
	if err != nil {
		return err
	}
	defer o.blob.Close() //nolint:errcheck // it was only read
	z, err := unpacker()
	if err != nil {
		return err
	}
	defer z.Close()
	_, err = do(o, z)
	return err
}

// Stream reads a segment's events of a stream, after a version.
func (f *Files) Stream(ctx context.Context, s archive.Segment, stream eventlog.Stream, after eventlog.Version) (found []eventlog.Recorded, err error) {
	err = f.each(ctx, s, func(o *opened, z *zstd.Decoder) (bool, error) {
		blocks, err := o.find(stream)
		if err != nil {
			return false, err
		}
		for _, i := range blocks {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			events, err := o.events(z, int(i))
			if err != nil {
				return false, err
			}
			for _, r := range events {
				if r.Stream == stream && r.Version > after {
					found = append(found, r)
				}
			}
		}
		return true, nil
	})
	return found, err
}

// find looks up a stream's blocks.
func (o *opened) find(stream eventlog.Stream) (blocks []uint32, err error) {
	want := digest(stream)
	entry := func(i uint64) (mention, error) {
		b := make([]byte, streamBytes)
		err := readAt(o.blob, b, int64(o.streamsAt()+i*streamBytes))
		return decodeMention(b), err
	}
	low, high := uint64(0), o.mentions
	for low < high {
		middle := (low + high) / 2
		m, err := entry(middle)
		if err != nil {
			return nil, named(o.name, err)
		}
		if m.stream < want {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for ; low < o.mentions; low++ {
		m, err := entry(low)
		switch {
		case err != nil:
			return nil, named(o.name, err)
		case m.stream != want:
			return blocks, nil
		case m.block >= uint32(len(o.blocks)):
			return nil, named(o.name, fmt.Errorf("%w: its index names block %d", archive.ErrDamaged, m.block))
		}
		blocks = append(blocks, m.block)
	}
	return blocks, nil
}

// Verify reads a whole segment, from the shelf and not from the cache. It checks that it is the
// recorded segment, and that it holds every position of its range once.
func (f *Files) Verify(ctx context.Context, s archive.Segment) error {
	f.forget(s.Hash)
	return f.each(ctx, s, func(o *opened, z *zstd.Decoder) (bool, error) {
		if got := o.segment(s.Name, s.Hash); got != s {
			return false, named(s.Name, fmt.Errorf("%w: its header has %+v, recorded was %+v", archive.ErrDamaged, got, s))
		}
		sum, next := sha256.New(), o.first
		for i := range o.blocks {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			raw, err := o.unpack(z, i)
			if err != nil {
				return false, err
			}
			sum.Write(raw)
			events, err := o.records(raw, i)
			if err != nil {
				return false, err
			}
			for _, r := range events {
				if r.Position != next {
					return false, named(s.Name, fmt.Errorf("%w: it has position %d instead of %d", archive.ErrDamaged, r.Position, next))
				}
				next++
			}
		}
		if next != o.past || !bytes.Equal(sum.Sum(nil), o.contents[:]) {
			return false, named(s.Name, fmt.Errorf("%w: its contents differ from its header", archive.ErrDamaged))
		}
		return true, nil
	})
}

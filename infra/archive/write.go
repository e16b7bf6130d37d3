package archive

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Write makes the segment of a range of positions from the log's events, beginning at first. It
// reads the segment back before it returns. A file of that name is replaced.
func (f *Files) Write(ctx context.Context, store eventlog.ID, first, past eventlog.Position, events iter.Seq2[eventlog.Batch, error]) (_ archive.Segment, err error) {
	name := archive.Name(first, past)
	defer func() {
		if err != nil {
			err = fmt.Errorf("write archive segment %s: %w", name, err)
		}
	}()
	draft, err := f.shelf.Create(ctx, name)
	if err != nil {
		return archive.Segment{}, err
	}
	defer draft.Discard()
	w, err := newWriter(draft, header{store: store, first: first, past: past})
	if err != nil {
		return archive.Segment{}, err
	}
	if err := w.fill(events); err != nil {
		return archive.Segment{}, err
	}
	segment, err := w.finish(name)
	if err != nil {
		return archive.Segment{}, err
	}
	f.crash("archive.written")
	if err := draft.Commit(); err != nil {
		return archive.Segment{}, err
	}
	f.crash("archive.named")
	if err := f.Verify(ctx, segment); err != nil {
		return archive.Segment{}, fmt.Errorf("read back: %w", err)
	}
	return segment, nil
}

// writer writes one segment.
type writer struct {
	out      Draft
	h        header
	packer   *zstd.Encoder
	contents hash.Hash
	blocks   []block
	mentions []mention

	next eventlog.Position   // expected next position
	raw  []byte              // of the unfinished block
	b    block               // of the unfinished block
	seen map[uint64]struct{} // streams of the unfinished block
}

func newWriter(out Draft, h header) (*writer, error) {
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	w := &writer{out: out, h: h, packer: packer, contents: sha256.New(), next: h.first, seen: map[uint64]struct{}{}}
	w.h.indexAt = headerBytes
	_, err = out.Write(make([]byte, headerBytes)) // written at the end
	return w, err
}

var errShort = errors.New("the log has no more events")

// fill takes events until the range is complete.
func (w *writer) fill(events iter.Seq2[eventlog.Batch, error]) error {
	for batch, err := range events {
		if err != nil {
			return err
		}
		for _, r := range batch.Events {
			if r.Position >= w.h.past {
				return w.flush()
			}
			if err := w.add(r); err != nil {
				return err
			}
		}
		if w.next >= w.h.past {
			return w.flush()
		}
	}
	return fmt.Errorf("%w after position %d", errShort, w.next-1)
}

func (w *writer) add(r eventlog.Recorded) error {
	if r.Position != w.next {
		return fmt.Errorf("position %d comes instead of %d", r.Position, w.next)
	}
	w.next++
	at := r.At.UnixMicro()
	if w.h.events == 0 {
		w.h.from = at
	}
	w.h.to = at
	w.h.events++
	if w.b.events == 0 {
		w.b.first = r.Position
	}
	w.b.last = r.Position
	w.b.events++
	w.raw = appendRecord(w.raw, r)
	if d := digest(r.Stream); !has(w.seen, d) {
		w.seen[d] = struct{}{}
		w.mentions = append(w.mentions, mention{d, uint32(len(w.blocks))})
	}
	if w.b.events == blockEvents || len(w.raw) >= blockData {
		return w.flush()
	}
	return nil
}

func has(set map[uint64]struct{}, d uint64) bool {
	_, ok := set[d]
	return ok
}

// flush writes the unfinished block.
func (w *writer) flush() error {
	if w.b.events == 0 {
		return nil
	}
	w.contents.Write(w.raw)
	packed := w.packer.EncodeAll(w.raw, nil)
	w.b.at, w.b.size, w.b.raw, w.b.hash = w.h.indexAt, uint32(len(packed)), uint32(len(w.raw)), sha256.Sum256(packed)
	w.blocks = append(w.blocks, w.b)
	w.h.indexAt += uint64(len(packed))
	w.b, w.raw = block{}, w.raw[:0]
	clear(w.seen)
	_, err := w.out.Write(packed)
	return err
}

// finish writes the indexes, the footer and the header.
func (w *writer) finish(name string) (archive.Segment, error) {
	if w.next != w.h.past {
		return archive.Segment{}, fmt.Errorf("%w after position %d", errShort, w.next-1)
	}
	slices.SortFunc(w.mentions, func(a, b mention) int {
		return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.block, b.block))
	})
	w.h.blocks, w.h.mentions = uint64(len(w.blocks)), uint64(len(w.mentions))
	w.contents.Sum(w.h.contents[:0])
	index := make([]byte, 0, len(w.blocks)*blockBytes+len(w.mentions)*streamBytes)
	for _, b := range w.blocks {
		index = b.append(index)
	}
	for _, m := range w.mentions {
		index = m.append(index)
	}
	head := w.h.encode()
	sum := sha256.New()
	sum.Write(head)
	sum.Write(index)
	hash := archive.Digest(sum.Sum(nil))
	_, err := w.out.Write(append(append(index, hash[:]...), endMark...))
	if err == nil {
		_, err = w.out.WriteAt(head, 0)
	}
	return w.h.segment(name, hash), err
}

// Draft is an unfinished file. It exists for readers once it is committed.
type Draft interface {
	io.Writer
	io.WriterAt
	Commit() error
	Discard() // no effect after Commit
}

package commands

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// SnapshotRows keeps snapshots, one a stream. It may lose any of them at any time, and
// what it hands out is trusted no further than its seal.
type SnapshotRows interface {
	// Snapshot is that of a stream; ok is false when there is none.
	Snapshot(ctx context.Context, stream event.Stream) (s event.Snapshot, ok bool, err error)
	// KeepSnapshot puts a snapshot in the place of the stream's earlier one.
	KeepSnapshot(ctx context.Context, s event.Snapshot) error
}

// Snapshots spare a [Handler] the reading of long streams. They are never needed: one
// that is missing, of another schema, damaged, or of another history is passed over,
// and the stream is read from its beginning.
type Snapshots[S any] struct {
	Rows   SnapshotRows
	Schema int // of Encode; another one's snapshots are passed over
	Encode func(S) []byte
	Decode func([]byte) (S, error)
	// Every is after how many events that had to be read a snapshot is kept. Of a
	// stream that is more than eight times as long it is an eighth of its events, so
	// that the work of keeping stays proportional to the stream.
	Every int
	// Failed, when set, is told of a snapshot that could not be read or kept.
	Failed func(stream event.Stream, err error)
}

const (
	// snapshotShare is the share of a stream's events that may have to be read.
	snapshotShare = 8
	// snapshotBytes bounds what is kept of a stream.
	snapshotBytes = 32 << 20
)

// sealBytes is how many bytes a snapshot's seal takes at the end of its data.
const sealBytes = sha256.Size

// seal binds all of a snapshot, and the id of the event it stands at.
func seal(s event.Snapshot, at event.ID, data []byte) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "watchtower snapshot %d:%s", len(s.Stream), s.Stream)
	for _, n := range []uint64{uint64(s.Version), uint64(s.Position), uint64(s.Schema)} {
		_ = binary.Write(h, binary.BigEndian, n) // a hash never fails
	}
	h.Write(s.Link[:])
	h.Write(at[:])
	h.Write(data)
	return h.Sum(nil)
}

// find is a stream's snapshot, if there is one that may be of use. Whether it is one of
// this stream's history the event it stands at has to tell.
func (k *Snapshots[S]) find(ctx context.Context, stream event.Stream) (event.Snapshot, bool) {
	s, ok, err := k.Rows.Snapshot(ctx, stream)
	if err != nil {
		k.failed(stream, err)
		return event.Snapshot{}, false
	}
	return s, ok && s.Stream == stream && s.Schema == k.Schema && s.Version > 0 && len(s.Data) >= sealBytes
}

// open is the state that a snapshot holds, if the event at its version is the one that
// the snapshot was made at.
func (k *Snapshots[S]) open(s event.Snapshot, at event.Recorded) (state S, ok bool) {
	data, sealed := s.Data[:len(s.Data)-sealBytes], s.Data[len(s.Data)-sealBytes:]
	if at.Version != s.Version || at.Position != s.Position || at.Linked() != s.Link || !bytes.Equal(sealed, seal(s, at.ID, data)) {
		return state, false
	}
	state, err := k.Decode(data)
	if err != nil {
		k.failed(s.Stream, err)
	}
	return state, err == nil
}

// keep makes a snapshot of a state, if so many events had to be read for it. It cannot
// fail: what is not kept is read again.
func (k *Snapshots[S]) keep(ctx context.Context, state S, at event.Recorded, read int) {
	if !k.due(at.Version, read) {
		return
	}
	data := k.Encode(state)
	if len(data) > snapshotBytes {
		return
	}
	s := event.Snapshot{Stream: at.Stream, Version: at.Version, Position: at.Position, Link: at.Linked(), Schema: k.Schema}
	s.Data = append(data, seal(s, at.ID, data)...)
	if err := k.Rows.KeepSnapshot(ctx, s); err != nil && ctx.Err() == nil {
		k.failed(at.Stream, err)
	}
}

// due reports whether so many events are enough for a snapshot of a stream of this length.
func (k *Snapshots[S]) due(at event.Version, read int) bool {
	return k.Every > 0 && read >= max(k.Every, int(at/snapshotShare))
}

// Keep is for a caller that has followed a stream by itself, so many events since a
// snapshot was kept last: it keeps one, if that is enough. It cannot fail: what is not kept
// is read again.
func (h Handler[S, C, E]) Keep(ctx context.Context, stream event.Stream, r Result[S], since int) (kept bool) {
	if h.Snapshots == nil || !h.Snapshots.due(r.Version, since) {
		return false
	}
	for last, err := range h.Store.ReadStream(ctx, stream, r.Version-1) {
		if err == nil {
			h.Snapshots.keep(ctx, r.State, last, since)
		}
		return err == nil
	}
	return false
}

func (k *Snapshots[S]) failed(stream event.Stream, err error) {
	if k.Failed != nil {
		k.Failed(stream, err)
	}
}

// errForeign says that a snapshot is not of the stream's history.
var errForeign = errors.New("snapshot of another history")

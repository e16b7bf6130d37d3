package handler

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
)

// Snapshots shorten a [Handler]'s reading of long streams. They are never required. A
// snapshot that is missing, damaged, of another schema, or of another history is ignored,
// and the stream is read from its beginning.
type Snapshots[S any] struct {
	Rows   port.SnapshotRows
	Schema int // of Encode; snapshots of another schema are ignored
	Encode func(S) []byte
	Decode func([]byte) (S, error)
	// Every is the number of events read since the last snapshot after which a new one is
	// kept. For a stream longer than eight times Every, the number is an eighth of its
	// length, so that the work of keeping stays proportional to the stream.
	Every int
	// Small says that the state does not grow with its stream: Every holds for any length.
	Small bool
	// Failed, when set, is called when a snapshot could not be read or kept.
	Failed func(stream eventlog.Stream, err error)
}

const (
	// snapshotShare is the inverse share of a stream's events that may have to be read.
	snapshotShare = 8
	// snapshotBytes is the largest encoded state that is kept, in bytes.
	snapshotBytes = 32 << 20
)

// sealBytes is the length of the seal at the end of a snapshot's data.
const sealBytes = sha256.Size

// seal hashes all fields of a snapshot, and the id of the event at its version.
func seal(s eventlog.Snapshot, at eventlog.ID, data []byte) []byte {
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

// find returns a stream's snapshot if it may be usable. open then checks it against the
// event at its version.
func (k *Snapshots[S]) find(ctx context.Context, stream eventlog.Stream) (eventlog.Snapshot, bool) {
	s, ok, err := k.Rows.Snapshot(ctx, stream)
	if err != nil {
		k.failed(stream, err)
		return eventlog.Snapshot{}, false
	}
	return s, ok && s.Stream == stream && s.Schema == k.Schema && s.Version > 0 && len(s.Data) >= sealBytes
}

// open decodes the state of a snapshot, if the event at its version is the event that the
// snapshot was made at.
func (k *Snapshots[S]) open(s eventlog.Snapshot, at eventlog.Recorded) (state S, ok bool) {
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

// keep stores a snapshot of a state if enough events were read since the last one. It
// cannot fail: without the snapshot the events are read again.
func (k *Snapshots[S]) keep(ctx context.Context, state S, at eventlog.Recorded, read int) {
	if !k.due(at.Version, read) {
		return
	}
	data := k.Encode(state)
	if len(data) > snapshotBytes {
		return
	}
	s := eventlog.Snapshot{Stream: at.Stream, Version: at.Version, Position: at.Position, Link: at.Linked(), Schema: k.Schema}
	s.Data = append(data, seal(s, at.ID, data)...)
	if err := k.Rows.KeepSnapshot(ctx, s); err != nil && ctx.Err() == nil {
		k.failed(at.Stream, err)
	}
}

// due reports whether this many events read justify a snapshot of a stream of this length.
func (k *Snapshots[S]) due(at eventlog.Version, read int) bool {
	enough := k.Every
	if !k.Small {
		enough = max(enough, int(at/snapshotShare))
	}
	return k.Every > 0 && read >= enough
}

// Keep stores a snapshot for a caller that follows a stream itself, if enough events have
// passed since the last one. It cannot fail: without the snapshot the events are read
// again.
func (h Handler[S, C, E]) Keep(ctx context.Context, stream eventlog.Stream, r Result[S], since int) (kept bool) {
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

func (k *Snapshots[S]) failed(stream eventlog.Stream, err error) {
	if k.Failed != nil {
		k.Failed(stream, err)
	}
}

// errForeign says that a snapshot is not of the stream's history.
var errForeign = errors.New("snapshot of another history")

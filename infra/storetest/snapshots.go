package storetest

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// SnapshotRows stores folded states.
type SnapshotRows interface {
	Snapshot(ctx context.Context, stream eventlog.Stream) (s eventlog.Snapshot, ok bool, err error)
	KeepSnapshot(ctx context.Context, s eventlog.Snapshot) error
}

// Snapshots is the contract of folded states.
func Snapshots(t *testing.T, open func(t *testing.T) Opened[SnapshotRows]) {
	ctx := soon(t)
	o := open(t)
	p := o.Port
	none := func(stream eventlog.Stream) {
		t.Helper()
		if s, ok, err := p.Snapshot(ctx, stream); ok || err != nil {
			t.Fatalf("%s has %+v, %v, %v", stream, s, ok, err)
		}
	}
	kept := func(want eventlog.Snapshot) {
		t.Helper()
		got, ok, err := p.Snapshot(ctx, want.Stream)
		check(t, err)
		if !bytes.Equal(got.Data, want.Data) { // cmp would compare it byte by byte
			t.Fatalf("kept: %v, %d bytes of data, not the %d that were to be", ok, len(got.Data), len(want.Data))
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(eventlog.Snapshot{}, "Data")); !ok || diff != "" {
			t.Fatalf("kept: %v, %s", ok, diff)
		}
	}
	none("a")
	first := eventlog.Snapshot{Stream: "a", Version: 7, Position: 1 << 40, Link: eventlog.Link{1, 31: 2}, Schema: 3, Data: []byte("zero \x00 and all")}
	check(t, p.KeepSnapshot(ctx, first))
	kept(first)
	none("A")
	none("a'; --")
	other := eventlog.Snapshot{Stream: "é", Version: 1, Position: 1, Schema: 1, Data: make([]byte, 3<<20)}
	check(t, p.KeepSnapshot(ctx, other))
	older := first // a slower fold may save an older state; both are valid
	older.Version, older.Position, older.Data = 5, 1<<39, []byte{}
	check(t, p.KeepSnapshot(ctx, older))
	kept(older)
	kept(other)
	p = o.Reopen()
	kept(older)
	kept(other)
}

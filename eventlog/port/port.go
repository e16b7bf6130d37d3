// Package port declares what the kernel needs of a store of events. The stores satisfy these
// interfaces by their methods, and pass the contract in infra/storetest.
package port

import (
	"context"
	"iter"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Store keeps events for ever. Every store promises:
//
//   - An append is durable when it returns nil, whole or not at all.
//   - It succeeds only if the stream was at the expected version. If the stream has
//     moved on, and the events after the expected version are these very events (by
//     id, in order), the answer is Repeated; else *eventlog.ConflictError.
//   - After eventlog.ErrUnknown it is unknown whether the events were written; retry the
//     same append to find out. Any other error means that nothing was written.
//   - Positions rise with commit order: a reader that has seen position p will
//     never be shown an event below p that it has not seen.
//   - Within a stream, versions rise by one and positions rise with them.
type Store interface {
	Append(ctx context.Context, stream eventlog.Stream, expected eventlog.Version, events ...eventlog.Event) (eventlog.Appended, error)
	// ReadStream yields the stream's events with version > after.
	ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error]
	// Version returns the version of the stream's last event; 0 when there is no stream. Its
	// cost does not depend on the number of events.
	Version(ctx context.Context, stream eventlog.Stream) (eventlog.Version, error)
	// ReadAll yields batches of at most max events after a position, up to the head of the
	// log as it was during the read. The last batch is Live, and may be empty.
	ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	// Subscribe is a ReadAll that never ends: it waits at the head and goes on. It retries
	// connection errors itself. It ends with the context's error, or with eventlog.ErrClosed.
	Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	// Head returns the position of the last event; 0 when there is none.
	Head(ctx context.Context) (eventlog.Position, error)
}

// Checkpoints stores the position up to which each reader has done its work.
type Checkpoints interface {
	Checkpoint(ctx context.Context, reader string) (eventlog.Position, error)
	// MoveCheckpoint is compare-and-set: it returns eventlog.ErrMoved if the checkpoint is not
	// at from.
	MoveCheckpoint(ctx context.Context, reader string, from, to eventlog.Position) error
}

// Leases grants leases that lapse by the store's clock. They save duplicate work; they do
// not guarantee exclusion. A holder that was suspended may still believe that it holds its
// lease, and a store that has lost its leases grants them again. Work that two must never
// do has a fence of its own, in the log.
//
// Terms of one lease may differ by up to a minute between holders. A lease that runs for
// longer than that counts as granted before the store's clock was set back, and delays
// nobody.
//
// A call may be tried several times, and a try may take effect late. Once a call has
// returned without an error, none of its tries changes the lease any more. After an error,
// a late try may still acquire the lease for ttl, or release it. It may do so even after
// the holder has acquired the lease again, if the store keeps no count of changes.
type Leases interface {
	// Acquire acquires or renews a lease for ttl. held is false while another holder's
	// lease runs. A holder is one run of one process. After an error the lease may be held
	// all the same, until ttl has passed.
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error)
	// Release releases a lease at once; not holding it is no error.
	Release(ctx context.Context, name, holder string) error
}

// SnapshotRows stores one snapshot per stream. It may lose any of them at any time, and a
// snapshot it returns is trusted only after its seal was checked.
type SnapshotRows interface {
	// Snapshot returns a stream's snapshot; ok is false when there is none.
	Snapshot(ctx context.Context, stream eventlog.Stream) (s eventlog.Snapshot, ok bool, err error)
	// KeepSnapshot replaces the stream's snapshot.
	KeepSnapshot(ctx context.Context, s eventlog.Snapshot) error
}

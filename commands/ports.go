package commands

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/event"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// ErrChainAway wraps the trouble of a command that has to ask a chain and cannot:
// nothing was changed, and trying again may help.
var ErrChainAway = errors.New("the chain cannot be asked")

// Store keeps events for ever. What every store promises:
//
//   - An append is durable when it returns nil, whole or not at all.
//   - It stands only if the stream was at the expected version. If the stream has
//     moved on, but what follows the expected version are these very events (by
//     id, in order), the answer is Repeated; else *event.ConflictError.
//   - After event.ErrUnknown nobody knows; the same append again tells.
//     Any other error means that nothing was written.
//   - Positions rise with commit order: a reader that has seen position p will
//     never be shown an event below p that it has not seen.
//   - Within a stream, versions rise by one and positions rise with them.
type Store interface {
	Append(ctx context.Context, stream event.Stream, expected event.Version, events ...event.Event) (event.Appended, error)
	// ReadStream yields the stream's events with version > after.
	ReadStream(ctx context.Context, stream event.Stream, after event.Version) iter.Seq2[event.Recorded, error]
	// ReadAll yields batches of at most max events after a position, up to the
	// head of the log as it was during the read; the last batch is Live (and may
	// be empty).
	ReadAll(ctx context.Context, after event.Position, f event.Filter, max int) iter.Seq2[event.Batch, error]
	// Subscribe is ReadAll that never ends: it waits at the head and goes on.
	// Trouble with the connection is retried inside; it ends with the context's
	// error, or with event.ErrClosed.
	Subscribe(ctx context.Context, after event.Position, f event.Filter, max int) iter.Seq2[event.Batch, error]
	// Head is the position of the last event; 0 when there is none.
	Head(ctx context.Context) (event.Position, error)
}

// PayloadRows keeps sealed payloads. The rows and their keys lie apart, and
// Erase removes both so that the medium holds neither.
type PayloadRows interface {
	// Put keeps rows, durable when it returns; one that is there already stays, and
	// counts as kept now.
	Put(ctx context.Context, rows []payload.Sealed) error
	// Get answers payload.ErrGone when the row, or its key, is not there.
	Get(ctx context.Context, id chain.ID, hash chain.Hash) (payload.Sealed, error)
	// Erase removes rows for good; a row that is not there is no error.
	Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error
	// EraseOrphan is Erase of one row, unless it was kept since a time: a Put that
	// has returned is never undone by an EraseOrphan of an earlier time.
	EraseOrphan(ctx context.Context, ref payload.Ref, before time.Time) error
	// Orphans lists payloads kept before a time, in the order of (chain, hash) and
	// after a cursor, at most limit: for the sweeper, which asks the log about each.
	Orphans(ctx context.Context, before time.Time, after payload.Ref, limit int) ([]payload.Ref, error)
}

// Checkpoints keeps the position up to which each reader has done its work.
type Checkpoints interface {
	Checkpoint(ctx context.Context, reader string) (event.Position, error)
	// MoveCheckpoint is compare-and-set: event.ErrMoved if it is not at from.
	MoveCheckpoint(ctx context.Context, reader string, from, to event.Position) error
}

// Leases hands out rights that lapse by themselves, by the store's clock. They are
// thrift, not safety: a holder that stood still believes it is one for a while, and a
// store that has lost its leases gives them anew. What must not be done by two has a
// fence of its own, in the log.
//
// Holders of one lease may take it for terms that differ by up to a minute. One that runs
// for longer than that counts as given before the store's clock was set back: nobody waits
// for it.
//
// A call may be tried several times, and a try may have its effect late. Where the call
// has returned without an error, none has an effect on the lease any more once the call
// has returned. After an error one still may: take the lease for ttl, or give it up, even
// when its holder has acquired it anew where the store keeps no count of changes.
type Leases interface {
	// Acquire takes or renews a lease for ttl. held is false while another
	// holder's lease runs. A holder is one run of one process. After an error the
	// lease may be held all the same, until ttl has passed.
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error)
	// Release gives a lease up at once; not holding it is no error.
	Release(ctx context.Context, name, holder string) error
}

package scheduler

import (
	"context"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Queue is the due queue, in the work schema: rebuildable from the log, shared by all
// replicas. Every queue promises:
//
//   - Apply makes its changes, in order, and moves the reader's checkpoint in one
//     database transaction; eventlog.ErrMoved if the checkpoint is not at from.
//   - After each change a row is Parked exactly while it is open, its key is not
//     the expiring key, and Window or more open rows of its sequence have a lower
//     nonce. When a verdict is announced, sealed or closed in a sequence, the
//     rows of that sequence that wait for a nonce become due at once.
//   - Lease gives each row to one holder at a time, until ttl passes by the
//     database's clock or Done is called: open, not parked, due, oldest due first.
//   - A row with further owners is due in the turn of each, at a time of the owner's own. While
//     one lease of the row runs, there is no other. Holds set aside one owner's turn, not the row.
//     Done moves the due time of the owners with its Account, or of all ([tx.Done].ForAll).
//   - While an account is on hold, Lease sets its due rows aside. It releases one
//     row when the hold's time has come, and two more for each successful row
//     ([tx.Able]): least attempted first, then oldest due first. A row that shows
//     nothing about the account ([tx.Unasked]) is followed by another. A hold
//     without rows ends.
type Queue interface {
	Apply(ctx context.Context, reader string, from, to eventlog.Position, changes []tx.Change) error
	// Lease takes at most limit due rows of a chain, at most repeats of them attempted
	// before. until is the time until the next row is due, at most [Horizon]; 0: more rows
	// may be due now. It ignores repeats if the maximum was leased. A leased row may count
	// as due when its lease ends.
	Lease(ctx context.Context, id chain.ID, holder string, ttl time.Duration, limit, repeats int) (work []tx.Work, until time.Duration, err error)
	Done(ctx context.Context, holder string, done []tx.Done) error
	// Find returns the rows of a chain with these hashes, in any phase, with their further owners. A row that is
	// parked though it is due shows the nonce that it waits for: the nonce that the first
	// row of its sequence waits for, or has.
	Find(ctx context.Context, id chain.ID, hashes []chain.Hash) ([]tx.Work, error)
	// Unfilled lists rows whose Bytes are 0, and open rows whose further owners are not known, after a
	// row, by chain and hash.
	Unfilled(ctx context.Context, after tx.Ref, limit int) ([]tx.Ref, error)
	// Depth counts a chain's rows. It may have to read all of them.
	Depth(ctx context.Context, id chain.ID) (tx.Depth, error)
}

// Horizon bounds the until that Lease returns.
const Horizon = tx.Horizon

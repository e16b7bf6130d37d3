package commands

import (
	"context"
	"errors"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/payload"
)

// ErrChainAway wraps the error of a command that must read a chain and cannot. Nothing was
// changed, and a retry may succeed.
var ErrChainAway = errors.New("the chain cannot be queried")

// PayloadRows stores sealed payloads. Rows and their keys are stored apart, and Erase
// removes both, so that the medium holds neither.
type PayloadRows interface {
	// Put stores rows, which are durable when it returns. A row that exists already stays
	// unchanged, and counts as kept now.
	Put(ctx context.Context, rows []payload.Sealed) error
	// Get returns payload.ErrGone when the row or its key does not exist.
	Get(ctx context.Context, id chain.ID, hash chain.Hash) (payload.Sealed, error)
	// Erase removes rows for good; a row that does not exist is no error.
	Erase(ctx context.Context, id chain.ID, hashes []chain.Hash) error
	// EraseOrphan erases one row, unless it was kept at or after a time: it never undoes a
	// Put that returned after that time.
	EraseOrphan(ctx context.Context, ref payload.Ref, before time.Time) error
	// Orphans lists at most limit payloads kept before a time, ordered by (chain, hash),
	// after a cursor. The sweeper then checks the log for each.
	Orphans(ctx context.Context, before time.Time, after payload.Ref, limit int) ([]payload.Ref, error)
}

package postgres

import (
	"context"
	"io/fs"

	"github.com/tempo-watchtower/watchtower/domain/request"
)

// MigrateFiles applies files other than the project's.
func (db *DB) MigrateFiles(ctx context.Context, files fs.FS) error {
	return migrate(ctx, db.config, files)
}

// Statements of the leases, for a test that runs them late.
const (
	AcquireLease = acquireLease
	ReleaseLease = releaseLease
)

// Statements of the queue of notices, for EXPLAIN.
const (
	MoveHeads     = moveHeads
	MoveDue       = moveDue
	UpdateNotices = updateNotices
	HeldNotices   = heldNotices
	ForgetNotices = forgetNotices
	GiveUpSome    = giveUpSome
	CountQueued   = countQueued
	CountDead     = countDead
	QueuedOfOne   = queuedOfClient
	RequeueSome   = requeueSome
	RequeueNamed  = requeueNamed
)

// Statements of the work queue of intents, for EXPLAIN.
const (
	ClaimableIntents = claimableIntents
	DropIntentHeads  = dropIntentHeads
	MarkIntentHeads  = markIntentHeads
	LapseClaims      = lapseClaims
)

// SequenceRows returns the statement of the next free nonce, for EXPLAIN.
func SequenceRows() string { return sequenceRows() }

// ExpiringWork returns the statement of expired rows, for EXPLAIN.
func ExpiringWork() string { return expiringWork() }

// Forgetting returns the statement that removes the oldest requests, for EXPLAIN.
func Forgetting(o request.Oldest) (text string, args []any) { return forgetting(o) }

// Waiting returns the number of appends that wait for the committer.
func (l *Log) Waiting() int { return l.line.Len() }

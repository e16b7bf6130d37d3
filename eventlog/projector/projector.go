// Package projector folds events into tables that answer queries. The tables are disposable:
// they can be dropped and rebuilt from the log.
package projector

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Log is the log that a projector reads.
type Log interface {
	Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
}

// Projector keeps one projection up to date. A batch's rows and its checkpoint are written in
// one database transaction, and only if the checkpoint is where this projector left it. So a
// batch of a projector that has lost its lease is rolled back.
type Projector struct {
	Name   string // of the checkpoint and the lease
	DB     *sql.DB
	Log    Log
	Filter eventlog.Filter
	// Fold adds events to the tables.
	Fold func(ctx context.Context, dbtx *sql.Tx, events []eventlog.Recorded) error
	// Moved, if set, is called with each new checkpoint; live reports whether the checkpoint
	// was the head of the log.
	Moved func(at eventlog.Position, live bool)
}

// At the head of the log, each read gets its own database transaction. Behind it, several reads
// share one. The events of one subject then meet more often in a transaction, and its row is
// read and written once for all of them.
const (
	readMax    = 1000 // events in one read
	readsMerge = 8    // reads in one database transaction
)

// Run projects until ctx ends, folding fails, or another projector has moved the checkpoint.
func (p *Projector) Run(ctx context.Context) error {
	from, err := p.Checkpoint(ctx)
	if err != nil {
		return err
	}
	var gathered []eventlog.Recorded
	reads := 0
	for batch, err := range p.Log.Subscribe(ctx, from, p.Filter, readMax) {
		if err != nil {
			return err
		}
		gathered = append(gathered, batch.Events...)
		if reads++; !batch.Live && reads < readsMerge {
			continue
		}
		batch.Events, gathered, reads = gathered, nil, 0
		if batch.Next != from {
			if err := p.apply(ctx, from, batch); err != nil {
				if ctx.Err() != nil {
					return ctx.Err() // the database may say instead that the transaction is over
				}
				return fmt.Errorf("%s after position %d: %w", p.Name, from, p.before(ctx, from, batch, err))
			}
			from = batch.Next
		}
		if p.Moved != nil {
			p.Moved(from, batch.Live)
		}
	}
	return ctx.Err()
}

// before applies the events of a batch before the event that cannot be folded, so that they do
// not wait for it. It returns the error.
func (p *Projector) before(ctx context.Context, from eventlog.Position, batch eventlog.Batch, stuck error) error {
	head, ok := batch.Before(stuck)
	if !ok {
		return stuck
	}
	if err := p.apply(ctx, from, head); err != nil {
		return errors.Join(stuck, err)
	}
	if p.Moved != nil {
		p.Moved(head.Next, false)
	}
	return stuck
}

// Checkpoint is the position up to which the tables contain all events.
func (p *Projector) Checkpoint(ctx context.Context) (eventlog.Position, error) {
	var at int64
	err := p.DB.QueryRowContext(ctx, `SELECT position FROM readers WHERE name = $1`, p.Name).Scan(&at)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("checkpoint of %s: %w", p.Name, err)
	}
	return eventlog.Position(at), nil
}

func (p *Projector) apply(ctx context.Context, from eventlog.Position, batch eventlog.Batch) error {
	dbtx, err := p.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer dbtx.Rollback() //nolint:errcheck // after a commit it does nothing
	if _, err := dbtx.ExecContext(ctx, `INSERT INTO readers (name, position) VALUES ($1, 0) ON CONFLICT (name) DO NOTHING`, p.Name); err != nil {
		return err
	}
	// Update the checkpoint first: this also blocks other projectors of the same name.
	moved, err := dbtx.ExecContext(ctx, `UPDATE readers SET position = $1 WHERE name = $2 AND position = $3`,
		int64(batch.Next), p.Name, int64(from))
	if err != nil {
		return err
	}
	if n, err := moved.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, eventlog.ErrMoved)
	}
	if len(batch.Events) > 0 {
		if err := p.Fold(ctx, dbtx, batch.Events); err != nil {
			return err
		}
	}
	return dbtx.Commit()
}

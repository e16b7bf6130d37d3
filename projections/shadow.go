package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/tempo-watchtower/watchtower/domain/bulk"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Shadow holds the staging tables of one read model, with their own checkpoint, beside the
// serving tables. Only one process at a time may open it.
type Shadow interface {
	// Prepare creates missing tables. It keeps the rows of an earlier run, unless fresh is set
	// or another version of the model wrote them.
	Prepare(ctx context.Context, fresh bool) error
	// DB has the staging tables, whose names begin with Prefix; Live has the serving tables.
	DB() *sql.DB
	Live() *sql.DB
	Prefix() string
	// Load writes rows and moves the staging checkpoint in one database transaction. It returns
	// eventlog.ErrMoved if the checkpoint is not at from.
	Load(ctx context.Context, from, to eventlog.Position, changes []bulk.Change) error
	// Index creates the indexes; loading is faster without them.
	Index(ctx context.Context) error
	// Swap replaces the serving tables and checkpoint by the staging ones, in one database
	// transaction in which the serving checkpoint cannot move. Inside it, last gets both
	// checkpoints, and folds the shadow from its own up to the serving one if that is ahead.
	// Swap retries if it cannot get its locks soon, and then calls last again. Concurrent
	// readers wait briefly and do not fail.
	Swap(ctx context.Context, last func(dbtx *sql.Tx, own, live eventlog.Position) (eventlog.Position, error)) error
	// Drop removes the staging tables.
	Drop(ctx context.Context) error
	// Close lets another process open the shadow.
	Close() error
}

// Source is the log as read by a rebuild.
type Source interface {
	ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error]
	Head(ctx context.Context) (eventlog.Position, error)
}

// ahead is the number of batches that are read in advance.
const ahead = 4

// Replay calls each for the batches of a log after a position, up to upto, or (0) up to the
// log's head when it is reached. It reads ahead while each works. A batch's Next is never past
// upto. A log that ends before upto is an error.
func Replay(ctx context.Context, log Source, after, upto eventlog.Position, f eventlog.Filter, most int, each func(eventlog.Batch) error) error {
	type read struct {
		batch eventlog.Batch
		err   error
	}
	ctx, stop := context.WithCancel(ctx)
	reads := make(chan read, ahead)
	ended := make(chan struct{})
	batches := log.ReadAll(ctx, after, f, most)
	go func() {
		defer close(ended)
		defer close(reads)
		for batch, err := range batches {
			select {
			case reads <- read{batch, err}:
			case <-ctx.Done():
				return
			}
			if err != nil || upto > 0 && batch.Next >= upto {
				return
			}
		}
	}()
	defer func() {
		stop()
		<-ended
	}()
	for r := range reads {
		if r.err != nil {
			return r.err
		}
		batch := cut(r.batch, upto)
		if err := each(batch); err != nil {
			return err
		}
		after = batch.Next
	}
	if err := ctx.Err(); err != nil || after >= upto {
		return err
	}
	return fmt.Errorf("the log ends at position %d, before %d", after, upto)
}

// cut ends a batch at a position; 0 leaves it whole.
func cut(b eventlog.Batch, upto eventlog.Position) eventlog.Batch {
	if upto == 0 || b.Next <= upto {
		return b
	}
	n := len(b.Events)
	for n > 0 && b.Events[n-1].Position > upto {
		n--
	}
	return eventlog.Batch{Events: b.Events[:n], Next: upto}
}

// position reads a checkpoint; 0 if there is none.
func position(ctx context.Context, q Querier, prefix, name string) (eventlog.Position, error) {
	var at int64
	err := q.QueryRowContext(ctx, `SELECT position FROM `+prefix+`readers WHERE name = $1`, name).Scan(&at)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("checkpoint of %s: %w", name, err)
	}
	return eventlog.Position(at), nil
}

// move is a compare-and-set of a checkpoint: eventlog.ErrMoved if it is not at from.
func move(ctx context.Context, dbtx *sql.Tx, prefix, name string, from, to eventlog.Position) error {
	_, err := dbtx.ExecContext(ctx, `INSERT INTO `+prefix+`readers (name, position) VALUES ($1, 0) ON CONFLICT (name) DO NOTHING`, name)
	if err != nil {
		return err
	}
	moved, err := dbtx.ExecContext(ctx, `UPDATE `+prefix+`readers SET position = $1 WHERE name = $2 AND position = $3`,
		int64(to), name, int64(from))
	if err != nil {
		return err
	}
	if n, err := moved.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, eventlog.ErrMoved)
	}
	return nil
}

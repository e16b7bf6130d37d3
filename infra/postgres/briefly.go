package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// briefWait bounds how long a drop or restore that waits for readers blocks appends and other
	// readers. It does not begin to wait while a transaction reads the log for longer.
	briefWait = 300 * time.Millisecond
	// briefPause is the first pause between two tries. Each further pause is twice as long, up to
	// briefPauseMax.
	briefPause    = 2 * time.Second
	briefPauseMax = 30 * time.Second
	// dropTries are about a minute; the next pass drops again.
	dropTries = 6
	// rejoinTries bounds the wait for readers of the log at the end of a restore, to about an hour:
	// the events were copied already.
	rejoinTries = 124
)

// errLongReader: waiting for the readers of the log would take longer than briefWait.
var errLongReader = fmt.Errorf("a transaction has read the log for longer than %s", briefWait)

// briefly runs a database transaction that locks the whole log. Everyone else waits meanwhile, so
// it does not wait for long readers, and tries again later instead.
func (l *Log) briefly(ctx context.Context, task string, tries int, do func(dbtx pgx.Tx) error) error {
	return classed(persist(ctx, l.logger, task, tries, func() error {
		if err := l.outlastReaders(ctx); err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, l.pool, func(dbtx pgx.Tx) error {
			if _, err := dbtx.Exec(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = %d`, briefWait.Milliseconds())); err != nil {
				return err
			}
			return do(dbtx)
		})
	}))
}

// persist repeats a try that ends with a transient error. It logs while the pauses grow.
func persist(ctx context.Context, logger *slog.Logger, task string, tries int, try func() error) (err error) {
	wait := briefPause
	for left := tries - 1; ; left-- {
		if err = try(); err == nil || !Transient(err) || left <= 0 {
			return err
		}
		if wait < briefPauseMax {
			logger.Info("the log is in use or was not reached, tried again later", "task", task, "pause", wait, "err", err)
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, briefPauseMax)
	}
}

// readersOfLog lists the transactions that have locked the log in any mode: an exclusive lock waits
// for them. $1 limits the list; NULL: no limit.
const readersOfLog = `SELECT coalesce(array_agg(DISTINCT virtualtransaction), '{}') FROM pg_locks
	WHERE granted AND relation = 'log.events'::regclass
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND ($1::text[] IS NULL OR virtualtransaction = ANY ($1))`

// outlastReaders holds no lock while it waits for the present readers of the log. It returns
// errLongReader if one of them goes on for longer than briefWait.
func (l *Log) outlastReaders(ctx context.Context) error {
	var readers []string
	if err := l.pool.QueryRow(ctx, readersOfLog, nil).Scan(&readers); err != nil || len(readers) == 0 {
		return err
	}
	if err := pause(ctx, briefWait); err != nil {
		return err
	}
	if err := l.pool.QueryRow(ctx, readersOfLog, readers).Scan(&readers); err != nil || len(readers) == 0 {
		return err
	}
	return errLongReader
}

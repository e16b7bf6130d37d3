package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Transient reports whether the same call may succeed a little later: the connection broke, the
// server restarts or lacks resources, or a lock was not available. The end of the caller's own
// context is not transient.
func Transient(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return transientCode(server.Code)
	}
	var network net.Error
	var connect *pgconn.ConnectError
	switch {
	case err == nil, errors.Is(err, context.Canceled),
		errors.Is(err, eventlog.ErrClosed), errors.Is(err, puddle.ErrClosedPool):
		return false
	case errors.Is(err, errLongReader):
		return true
	case errors.As(err, &connect): // its own time limit appears as a context's deadline
		return true
	case errors.Is(err, context.DeadlineExceeded):
		return false
	}
	return errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}

// transientCode classifies SQLSTATEs; see appendix A of the Postgres manual.
func transientCode(code string) bool {
	switch code {
	case "40001", "40P01", // serialization failure, deadlock
		"55P03",                            // lock not available
		"57P01", "57P02", "57P03", "57P05", // the server ends the session or is starting
		"57014", // statement timeout: our contexts never cancel a statement on the server
		"25006", // read only: this server is no longer the primary
		"25P03": // idle in transaction for too long
		return true
	}
	switch code[:min(2, len(code))] {
	case "08", "53", "58": // connection, insufficient resources, system error
		return true
	}
	return false
}

// full reports whether the server's disk is full. That may pass, but not soon.
func full(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "53100"
}

// missing reports whether a table does not exist.
func missing(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "42P01"
}

// refused reports whether the server answered that the statement failed and the session
// continues. Then the database transaction was not committed. A FATAL answer is not enough: it
// may follow a commit.
func refused(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.SeverityUnlocalized == "ERROR"
}

// classed converts an error to the ports' error classes. Closing a pool cancels its connection
// attempts, and nothing else does: a caller whose context ends does not wait for them.
func classed(err error) error {
	var connect *pgconn.ConnectError
	if errors.Is(err, puddle.ErrClosedPool) || errors.As(err, &connect) && errors.Is(err, context.Canceled) {
		return eventlog.ErrClosed
	}
	return err
}

// unsure classifies a write's error: eventlog.ErrUnknown unless the server certainly did not
// commit.
func unsure(err error) error {
	err = classed(err)
	switch {
	case err == nil, errors.Is(err, eventlog.ErrClosed), errors.Is(err, eventlog.ErrMoved),
		refused(err), unsent(err):
		return err
	}
	var connect *pgconn.ConnectError
	var before *uncommittedError
	if errors.As(err, &connect) || errors.As(err, &before) {
		return err
	}
	return fmt.Errorf("%w: %w", eventlog.ErrUnknown, err)
}

// unsent reports whether the driver sent nothing. The driver also claims this for a closed
// connection, which it may have closed itself when the answer did not arrive.
func unsent(err error) bool {
	return pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed)
}

// uncommittedError is any error of a database transaction before its COMMIT was sent.
type uncommittedError struct{ error }

func (e *uncommittedError) Unwrap() error { return e.error }

// inTx runs a database transaction. An error that is not an uncommittedError came after COMMIT
// was sent.
func inTx(ctx context.Context, pool *pgxpool.Pool, do func(dbtx pgx.Tx) error) error {
	dbtx, err := pool.Begin(ctx)
	if err != nil {
		return &uncommittedError{err}
	}
	if err := do(dbtx); err != nil {
		// The caller's context may have ended. A connection that cannot roll back is closed,
		// with the same effect.
		rollback, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = dbtx.Rollback(rollback)
		return &uncommittedError{err}
	}
	return dbtx.Commit(ctx)
}

// inBatches runs a database transaction in two round trips, for callers that hold a contended
// lock. read queues the reads; then write queues the writes.
func inBatches(ctx context.Context, pool *pgxpool.Pool, read func(q *pgx.Batch), write func(q *pgx.Batch)) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return &uncommittedError{err}
	}
	defer conn.Release() // closes a connection that is still inside a transaction
	first := &pgx.Batch{}
	first.Queue("BEGIN")
	read(first)
	if err := conn.SendBatch(ctx, first).Close(); err != nil {
		return &uncommittedError{err}
	}
	second := &pgx.Batch{}
	write(second)
	second.Queue("COMMIT")
	return conn.SendBatch(ctx, second).Close()
}

// Retries come in quick succession, for about two seconds in all.
const (
	retries    = 8
	retryFirst = 10 * time.Millisecond
	retryMost  = 500 * time.Millisecond
)

// retry repeats an idempotent call while its error is transient.
func retry(ctx context.Context, do func() error) error {
	return repeat(ctx, do, Transient)
}

// retryRefused repeats a write while it certainly was not committed.
func retryRefused(ctx context.Context, do func() error) error {
	err := repeat(ctx, do, func(err error) bool {
		return Transient(err) && !errors.Is(unsure(err), eventlog.ErrUnknown)
	})
	return unsure(err)
}

func repeat(ctx context.Context, do func() error, again func(error) bool) error {
	wait := retryFirst
	for tries := 1; ; tries++ {
		err := do()
		if err == nil || tries == retries || !again(err) || full(err) || pause(ctx, wait) != nil {
			return classed(err)
		}
		wait = min(2*wait, retryMost)
	}
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

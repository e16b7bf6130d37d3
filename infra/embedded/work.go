package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Work is the content of work.db: the due queue, the watcher's open transactions, leases and
// checkpoints.
type Work struct {
	file   *file
	now    func() time.Time
	window int
	pause  time.Duration         // the longest pause between two attempts; 0: unknown
	turn   int64                 // owned by the writer: the last number of nextTurn
	turns  map[chain.ID]tx.Turns // owned by the writer
	latest time.Time             // owned by the writer: the latest time of a Lease
}

func openWork(path string, c care, o Options) (*Work, error) {
	f, err := openFile(path, c, tables("work"), workReaders, hooks{})
	if err != nil {
		return nil, err
	}
	w := &Work{file: f, now: o.Now, window: o.Window, pause: o.Pause, turns: map[chain.ID]tx.Turns{}}
	if err := w.letGo(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return w, nil
}

// letGo ends leases that run longer than any term: their holder has died, and the clock was set
// back since. Such a lease may hide a first attempt, whose due time may be any time away and
// proves nothing. But a leased row was due.
func (w *Work) letGo() error {
	if w.pause == 0 {
		return nil
	}
	_, err := write(context.Background(), w.file, "end leases", func(conn *sqlite.Conn) (struct{}, error) {
		now := w.now()
		return struct{}{}, exec(conn, `UPDATE work SET holder = NULL, lease_until = NULL, next_at = min(next_at, ?)
			WHERE lease_until > ?`, micros(now), micros(w.beyond(now)))
	})
	return err
}

// ordered stores an unsigned number so that SQLite's signed integers are in the
// same order; unordered is its inverse.
func ordered(n uint64) int64   { return int64(n ^ 1<<63) }
func unordered(n int64) uint64 { return uint64(n) ^ 1<<63 }

// orNull stores 0 as NULL.
func orNull(n uint64) any {
	if n == 0 {
		return nil
	}
	return ordered(n)
}

func micros(t time.Time) int64 { return tx.StoredTime(t).UnixMicro() }

func microsOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return micros(t)
}

// timeAt is the zero time for NULL.
func timeAt(row *sqlite.Stmt, col int) time.Time {
	if row.ColumnIsNull(col) {
		return time.Time{}
	}
	return time.UnixMicro(row.ColumnInt64(col)).UTC()
}

const workColumns = `no, chain, hash, sender, nonce_key, nonce, eligible_at, expires_at, phase, verdict,
	block_number, block_hash, next_at, attempts, note, sent_at, parked, wait_nonce, wait_since, account, held_since,
	client, bytes, claimed, named_sender, named_key, shared`

// leaseColumn is the first column that may follow workColumns.
const leaseColumn = 27

// row is a queue row with its number.
type row struct {
	no   int64
	turn int64 // number of the further owner in whose turn it is; 0: in its own
	tx.Work
}

func scanRow(s *sqlite.Stmt) row {
	uintOrZero := func(col int) uint64 {
		if s.ColumnIsNull(col) {
			return 0
		}
		return unordered(s.ColumnInt64(col))
	}
	r := row{no: s.ColumnInt64(0), Work: tx.Work{
		Chain: chain.ID(s.ColumnInt64(1)), Nonce: unordered(s.ColumnInt64(5)),
		EligibleAt: unordered(s.ColumnInt64(6)), ExpiresAt: uintOrZero(7),
		Phase: tx.Phase(s.ColumnText(8)), Verdict: tx.Status(s.ColumnText(9)),
		Block:  chain.Block{Number: uintOrZero(10)},
		NextAt: timeAt(s, 12), Attempts: s.ColumnInt(13), Note: s.ColumnText(14), SentAt: timeAt(s, 15),
		Parked: s.ColumnBool(16), WaitNonce: uintOrZero(17), WaitSince: timeAt(s, 18),
		HeldSince: timeAt(s, 20),
	}}
	s.ColumnBytes(2, r.Hash[:])
	s.ColumnBytes(3, r.Sender[:])
	s.ColumnBytes(4, r.NonceKey[:])
	s.ColumnBytes(11, r.Block.Hash[:])
	s.ColumnBytes(19, r.Account[:])
	r.Client, r.Bytes, r.Claimed = s.ColumnText(21), s.ColumnInt(22), s.ColumnBool(23)
	r.Shared = s.ColumnBool(26)
	if !s.ColumnIsNull(24) {
		s.ColumnBytes(24, r.Sender[:])
		s.ColumnBytes(25, r.NonceKey[:])
	}
	return r
}

// rows collects the result of a query of workColumns.
func rows(conn *sqlite.Conn, into *[]tx.Work, text string, args ...any) error {
	return query(conn, "SELECT "+workColumns+" FROM work "+text, func(s *sqlite.Stmt) bool {
		*into = append(*into, scanRow(s).Work)
		return true
	}, args...)
}

// read collects rows with a reading connection.
func (w *Work) read(ctx context.Context, f func(conn *sqlite.Conn, into *[]tx.Work) error) ([]tx.Work, error) {
	var found []tx.Work
	err := w.file.readers.read(ctx, func(conn *sqlite.Conn) error { return f(conn, &found) })
	if err != nil {
		return nil, err
	}
	return found, nil
}

// write runs a job that returns a T. An error made by refuse is an answer too: the job has
// written nothing, and other jobs are not affected.
func write[T any](ctx context.Context, f *file, what string, do func(conn *sqlite.Conn) (T, error)) (T, error) {
	type outcome struct {
		answer  T
		refused error
	}
	o := new(outcome) // on the heap: a caller that has gone must not see it written
	err := f.writer.do(ctx, &job{do: func(conn *sqlite.Conn) error {
		answer, err := do(conn)
		*o = outcome{answer: answer}
		if errors.Is(err, eventlog.ErrMoved) {
			o.refused, err = err, nil
		}
		return err
	}})
	var none T
	switch {
	case err != nil:
		return none, fmt.Errorf("%s: %w", what, err)
	case o.refused != nil:
		return none, fmt.Errorf("%s: %w", what, o.refused)
	}
	return o.answer, nil
}

// Checkpoint is a reader's position; 0 for an unknown reader.
func (w *Work) Checkpoint(ctx context.Context, reader string) (at eventlog.Position, err error) {
	err = w.file.readers.read(ctx, func(conn *sqlite.Conn) (err error) {
		at, err = checkpointOf(conn, reader)
		return err
	})
	return at, err
}

func checkpointOf(conn *sqlite.Conn, reader string) (at eventlog.Position, err error) {
	err = query(conn, "SELECT position FROM checkpoints WHERE reader = ?", func(s *sqlite.Stmt) bool {
		at = eventlog.Position(s.ColumnInt64(0))
		return false
	}, reader)
	return at, err
}

// MoveCheckpoint moves a checkpoint that is at from; otherwise eventlog.ErrMoved.
func (w *Work) MoveCheckpoint(ctx context.Context, reader string, from, to eventlog.Position) error {
	return w.Apply(ctx, reader, from, to, nil)
}

// moveCheckpoint moves a checkpoint that is at from; otherwise eventlog.ErrMoved.
func moveCheckpoint(conn *sqlite.Conn, reader string, from, to eventlog.Position) error {
	at, err := checkpointOf(conn, reader)
	if err != nil {
		return err
	}
	if at != from {
		return fmt.Errorf("%w: %s is at %d, not %d", eventlog.ErrMoved, reader, at, from)
	}
	return exec(conn, `INSERT INTO checkpoints (reader, position) VALUES (?1, ?2)
		ON CONFLICT (reader) DO UPDATE SET position = ?2`, reader, int64(to))
}

// Acquire takes or renews a lease for ttl; held is false while another holder's runs.
func (w *Work) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error) {
	t, err := write(ctx, w.file, "lease "+name, func(conn *sqlite.Conn) (term, error) {
		return take(conn, "leases", name, holder, w.now(), ttl)
	})
	return t.held, err
}

// Leased returns the last holder of a lease, and the end of its term; an empty holder if the lease was
// given up.
func (w *Work) Leased(ctx context.Context, name string) (holder string, until time.Time, err error) {
	err = w.file.readers.read(ctx, func(conn *sqlite.Conn) error {
		holder, until, err = leaseOf(conn, name)
		return err
	})
	return holder, until, err
}

// leaseOf reads a lease.
func leaseOf(conn *sqlite.Conn, name string) (holder string, until time.Time, err error) {
	err = query(conn, "SELECT holder, until FROM leases WHERE name = ? AND holder IS NOT NULL", func(s *sqlite.Stmt) bool {
		holder, until = s.ColumnText(0), time.UnixMicro(s.ColumnInt64(1))
		return false
	}, name)
	return holder, until, err
}

// Release ends a lease at once. Not holding it is no error.
func (w *Work) Release(ctx context.Context, name, holder string) error {
	_, err := write(ctx, w.file, "release lease "+name, func(conn *sqlite.Conn) (struct{}, error) {
		return struct{}{}, exec(conn, "UPDATE leases SET holder = NULL WHERE name = ? AND holder = ?", name, holder)
	})
	return err
}

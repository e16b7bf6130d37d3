package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

const selectBegins = `SELECT begins FROM log.head`

// Begins is the position from which the log is complete in this database; 1 if nothing was
// dropped.
func (l *Log) Begins(ctx context.Context) (eventlog.Position, error) {
	var begins int64
	err := retry(ctx, func() error { return l.pool.QueryRow(ctx, selectBegins).Scan(&begins) })
	return eventlog.Position(begins), err
}

const selectSegments = `SELECT store, first, past, name, hash, events, bytes, since, until FROM log.segments ORDER BY first`

// Segments lists the archive's files in order.
func (l *Log) Segments(ctx context.Context) (all []archive.Segment, err error) {
	err = retry(ctx, func() error {
		rows, err := l.pool.Query(ctx, selectSegments)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scanSegment)
		return err
	})
	return all, err
}

func scanSegment(row pgx.CollectableRow) (s archive.Segment, err error) {
	var store pgtype.UUID
	var first, past, events, bytes int64
	var hash []byte
	err = row.Scan(&store, &first, &past, &s.Name, &hash, &events, &bytes, &s.From, &s.To)
	s.Store, s.First, s.Past = store.Bytes, eventlog.Position(first), eventlog.Position(past)
	s.Events, s.Bytes, s.From, s.To = uint64(events), uint64(bytes), s.From.UTC(), s.To.UTC()
	copy(s.Hash[:], hash)
	return s, err
}

// KeepSegment lists a file. A file that is listed already stays unchanged.
func (l *Log) KeepSegment(ctx context.Context, s archive.Segment) error {
	return retryRefused(ctx, func() error {
		_, err := l.pool.Exec(ctx, `INSERT INTO log.segments (store, first, past, name, hash, events, bytes, since, until)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
			pgtype.UUID{Bytes: s.Store, Valid: true}, clamp(uint64(s.First)), clamp(uint64(s.Past)), s.Name, s.Hash[:],
			clamp(s.Events), clamp(s.Bytes), s.From, s.To)
		return err
	})
}

const (
	// copyPositions is the number of positions read per database transaction: a longer one
	// would keep the server from reusing old versions of the head row.
	copyPositions = 20_000
	// copyStreams is the number of kept streams read per query.
	copyStreams = 1000
)

// Drop drops the partitions below a position whose events are in segments. First it copies
// events of unsettled streams forward. It returns the position where the log begins afterwards.
// It may be called again after any error.
func (l *Log) Drop(ctx context.Context, below eventlog.Position, rule archive.Rule) (begins eventlog.Position, err error) {
	if err := retry(ctx, func() error { return l.discard(ctx, nil) }); err != nil {
		return 0, fmt.Errorf("drop tables of unfinished restores: %w", err)
	}
	for {
		var first, past int64
		err := retry(ctx, func() error {
			return l.pool.QueryRow(ctx, `SELECT first, past FROM log.partitions ORDER BY first LIMIT 1`).Scan(&first, &past)
		})
		if errors.Is(err, pgx.ErrNoRows) || err == nil && eventlog.Position(past) > below {
			break
		}
		if err != nil {
			return 0, err
		}
		if err := l.copyForward(ctx, first, past, below, rule); err != nil {
			return 0, fmt.Errorf("copy forward from positions %d to %d: %w", first, past-1, err)
		}
		l.crash(copied)
		if begins, err = l.forget(ctx, past); err != nil {
			return 0, fmt.Errorf("drop positions %d to %d: %w", first, past-1, err)
		}
		l.crash(dropped)
		if int64(begins) < past {
			return begins, fmt.Errorf("positions %d to %d are in no listed segment, and stay", first, past-1)
		}
	}
	if err := l.dropKept(ctx, rule); err != nil {
		return 0, err
	}
	return l.Begins(ctx)
}

// copyForward keeps the events of unsettled streams in a range.
func (l *Log) copyForward(ctx context.Context, first, past int64, below eventlog.Position, rule archive.Rule) error {
	const touched = `SELECT t.stream, s.name, s.last_pos, coalesce((SELECT e.name FROM log.events e WHERE e.pos = s.last_pos), '')
		FROM (SELECT DISTINCT stream FROM log.events WHERE pos >= $1 AND pos < $2) t JOIN log.streams s ON s.no = t.stream`
	for from := first; from < past; from += copyPositions {
		to := min(from+copyPositions, past)
		open, err := l.pick(ctx, func(settled bool) bool { return !settled }, below, rule, touched, from, to)
		if err != nil {
			return err
		}
		if len(open) == 0 {
			continue
		}
		err = retry(ctx, func() error {
			_, err := l.pool.Exec(ctx, `INSERT INTO log.kept SELECT * FROM log.events
				WHERE pos >= $1 AND pos < $2 AND stream = ANY ($3::bigint[]) ON CONFLICT DO NOTHING`, from, to, open)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pick queries streams and returns the settled or the unsettled ones, as want says.
func (l *Log) pick(ctx context.Context, want func(settled bool) bool, below eventlog.Position, rule archive.Rule, sql string, args ...any) (picked []int64, err error) {
	err = retry(ctx, func() error {
		picked = nil
		rows, err := l.pool.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		var no, last int64
		var stream, name string
		_, err = pgx.ForEachRow(rows, []any{&no, &stream, &last, &name}, func() error {
			if want(eventlog.Position(last) < below && rule.Settled(eventlog.Stream(stream), name)) {
				picked = append(picked, no)
			}
			return nil
		})
		return err
	})
	return picked, err
}

// forget drops the first partition, which ends at past. A repeat after a lost reply drops nothing
// more: the next partition ends later, and its unsettled streams are not copied forward yet.
func (l *Log) forget(ctx context.Context, past int64) (eventlog.Position, error) {
	var began int64
	err := l.briefly(ctx, "drop a partition", dropTries, func(dbtx pgx.Tx) error {
		return dbtx.QueryRow(ctx, `SELECT log.forget($1)`, past).Scan(&began)
	})
	return eventlog.Position(began), err
}

// dropKept removes copied-forward events of streams that have settled since.
func (l *Log) dropKept(ctx context.Context, rule archive.Rule) error {
	begins, err := l.Begins(ctx)
	if err != nil {
		return err
	}
	const kept = `SELECT t.stream, s.name, s.last_pos, coalesce((SELECT k.name FROM log.kept k WHERE k.pos = s.last_pos), '')
		FROM (SELECT DISTINCT stream FROM log.kept WHERE stream > $1 ORDER BY stream LIMIT $2) t JOIN log.streams s ON s.no = t.stream`
	for after := int64(0); ; {
		last := after
		settled, err := l.pick(ctx, func(settled bool) bool { return settled }, begins, rule, kept, after, copyStreams)
		if err != nil {
			return err
		}
		err = retry(ctx, func() error {
			if _, err := l.pool.Exec(ctx, `DELETE FROM log.kept WHERE stream = ANY ($1::bigint[])`, settled); err != nil {
				return err
			}
			return l.pool.QueryRow(ctx, `SELECT coalesce(max(stream), 0) FROM (SELECT DISTINCT stream FROM log.kept WHERE stream > $1 ORDER BY stream LIMIT $2) t`,
				after, copyStreams).Scan(&after)
		})
		if err != nil || after <= last {
			return err
		}
	}
}

package postgres

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Restore puts dropped events from a position on back into the log. They must be all events up
// to the beginning of the log.
//
// It copies them to a table of their own, in a short database transaction for each batch: reading
// the next batch may take longer than IdleTimeout allows within a transaction, and appends do
// not wait meanwhile. The last transaction attaches the table and lowers the log's beginning.
// Until then readers find the events in the archive.
func (l *Log) Restore(ctx context.Context, from eventlog.Position, events iter.Seq2[eventlog.Batch, error]) error {
	begins, err := l.Begins(ctx)
	if err != nil || from >= begins {
		return err
	}
	var table string
	err = l.pool.QueryRow(ctx, `SELECT log.recall($1, $2)`, clamp(uint64(from)), clamp(uint64(begins))).Scan(&table)
	if err != nil {
		return classed(err)
	}
	if err = l.fill(ctx, table, from, begins, events); err == nil {
		l.crash(recalled)
		err = l.rejoin(ctx, table, from, begins)
	}
	if err != nil {
		l.giveUp(ctx, table)
		return err
	}
	l.crash(rejoined)
	return nil
}

// fill inserts the events from a position on, up to the beginning of the log.
func (l *Log) fill(ctx context.Context, table string, from, begins eventlog.Position, events iter.Seq2[eventlog.Batch, error]) error {
	next := from
	for batch, err := range events {
		if err != nil {
			return err
		}
		for i, r := range batch.Events {
			if r.Position >= begins {
				batch.Events = batch.Events[:i]
				break
			}
			if r.Position != next {
				return fmt.Errorf("position %d comes instead of %d", r.Position, next)
			}
			next++
		}
		if err := retryRefused(ctx, func() error { return insertRecorded(ctx, l.pool, table, batch.Events) }); err != nil {
			return err
		}
		if next == begins {
			return nil // the rest is in the log
		}
	}
	return fmt.Errorf("the events end before position %d, the log begins at %d", next, begins)
}

// rejoin attaches the filled table to the log.
func (l *Log) rejoin(ctx context.Context, table string, from, begins eventlog.Position) error {
	return l.briefly(ctx, "attach restored events", rejoinTries, func(dbtx pgx.Tx) error {
		if _, err := dbtx.Exec(ctx, `DELETE FROM log.kept WHERE pos >= $1`, clamp(uint64(from))); err != nil {
			return err
		}
		_, err := dbtx.Exec(ctx, `SELECT log.rejoin($1, $2, $3)`, table, clamp(uint64(from)), clamp(uint64(begins)))
		return err
	})
}

// giveUp drops the table of a failed restore, also if ctx has ended. If that fails too, the
// next restore or drop does it.
func (l *Log) giveUp(ctx context.Context, table string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := l.discard(ctx, &table); err != nil {
		l.logger.Warn("the table of a failed restore stays for now", "table", table, "err", err)
	}
}

// discard drops the table of an unfinished restore; nil: of all such restores.
func (l *Log) discard(ctx context.Context, table *string) error {
	_, err := l.pool.Exec(ctx, `SELECT log.discard($1)`, table)
	return err
}

// insertRecorded inserts events into a table as recorded; their positions are dense.
func insertRecorded(ctx context.Context, db execer, table string, events []eventlog.Recorded) error {
	if len(events) == 0 {
		return nil
	}
	b := newBatch(clamp(uint64(events[0].Position)) - 1)
	var streams []string
	var at []time.Time
	for _, r := range events {
		b.add(&tail{name: r.Stream, no: 1, version: r.Version - 1}, []eventlog.Event{r.Event})
		streams, at = append(streams, string(r.Stream)), append(at, r.At)
	}
	insert := `INSERT INTO ` + pgx.Identifier{"log", table}.Sanitize() + ` (pos, stream, version, at, id, name, data, correlation, causation, actor, trace, link)
		SELECT u.pos, s.no, u.version, u.at, u.id, u.name, u.data, u.correlation, u.causation, u.actor, u.trace, u.link
		FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::timestamptz[], $5::uuid[], $6::text[], $7::bytea[], $8::uuid[], $9::uuid[], $10::text[], $11::text[], $12::bytea[])
		u (pos, stream, version, at, id, name, data, correlation, causation, actor, trace, link) JOIN log.streams s ON s.name = u.stream`
	tag, err := db.Exec(ctx, insert, b.pos, streams, b.version, at, b.id, b.name, b.data, b.correlation, b.causation, b.actor, b.trace, b.link)
	if err == nil && tag.RowsAffected() != int64(len(events)) {
		err = fmt.Errorf("%d of %d events have unknown streams", int64(len(events))-tag.RowsAffected(), len(events))
	}
	return err
}

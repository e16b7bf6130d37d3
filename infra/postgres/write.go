package postgres

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

const (
	lockHead = `SELECT pos FROM log.head FOR UPDATE`

	selectTails = `SELECT name, no, version, last_pos FROM log.streams WHERE name = ANY($1::text[])`
)

// begin connects if necessary, takes the head row's lock and reads the tails of the appends'
// streams. This relies on READ COMMITTED: each statement after the lock sees everything
// committed before it.
func (c *committer) begin(ctx context.Context, taken []*pending) (*batch, error) {
	if c.conn == nil {
		conn, err := pgx.ConnectConfig(ctx, c.log.config)
		if err != nil {
			return nil, err
		}
		c.conn, c.past = conn, 0
	}
	for {
		if c.past == 0 {
			if err := c.extend(ctx); err != nil {
				return nil, err
			}
		}
		b, err := c.lock(ctx, taken)
		if err != nil || c.past-b.head > c.ahead()/2 {
			return b, err
		}
		c.past = 0 // other processes have appended
		if _, err := c.conn.Exec(ctx, `ROLLBACK`); err != nil {
			return nil, err
		}
	}
}

// lock begins a database transaction, and takes the head row's lock.
func (c *committer) lock(ctx context.Context, taken []*pending) (b *batch, err error) {
	q := &pgx.Batch{}
	q.Queue(`BEGIN`)
	q.Queue(lockHead).QueryRow(func(row pgx.Row) error {
		var head int64
		err := row.Scan(&head)
		b = newBatch(head)
		return err
	})
	q.Queue(selectTails, names(taken)).Query(func(rows pgx.Rows) error { return scanTails(rows, b) })
	return b, c.conn.SendBatch(ctx, q).Close()
}

// ahead is the number of positions for which there are partitions after extend.
func (c *committer) ahead() int64 { return max(c.partition, 2*(batchEvents+eventlog.MaxAppend)) }

// extend makes partitions ahead of need. That is rare, as each lasts for millions of positions.
//
// It is a database transaction of its own, which ends before the first event enters a partition.
// Readers learn of a partition when its transaction tells other sessions to forget cached tables,
// a moment after the rows of this transaction are visible. In that moment a reader would see the
// new head without the events below it, and never read them.
func (c *committer) extend(ctx context.Context) error {
	const extend = `SELECT log.extend((SELECT pos FROM log.head) + $1, $2)`
	return c.conn.QueryRow(ctx, extend, c.ahead(), c.partition).Scan(&c.past)
}

func names(taken []*pending) []string {
	names := make([]string, len(taken))
	for i, p := range taken {
		names[i] = string(p.stream)
	}
	return names
}

func (c *committer) readTails(ctx context.Context, b *batch, taken []*pending) error {
	if len(taken) == 0 {
		return nil
	}
	rows, err := c.conn.Query(ctx, selectTails, names(taken))
	if err != nil {
		return err
	}
	defer rows.Close()
	return scanTails(rows, b)
}

func scanTails(rows pgx.Rows, b *batch) error {
	for rows.Next() {
		var name string
		var no, version, last int64
		if err := rows.Scan(&name, &no, &version, &last); err != nil {
			return err
		}
		t := b.tail(eventlog.Stream(name))
		t.no, t.last = no, last
		t.version, t.stored = eventlog.Version(version), eventlog.Version(version)
	}
	return rows.Err()
}

const selectStanding = `
SELECT u.ord, e.id, e.pos
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY u (no, last, above, upto, ord)
CROSS JOIN LATERAL (
  SELECT k.id, k.pos FROM log.kept k
  WHERE k.stream = u.no AND k.version > u.above AND k.version <= u.upto AND k.pos < (SELECT begins FROM log.head)
  UNION ALL
  SELECT e.id, e.pos FROM log.events e
  WHERE e.stream = u.no AND e.version > u.above AND e.version <= u.upto AND e.pos BETWEEN u.no AND u.last
) e
ORDER BY u.ord, e.pos`

// readStanding reads the events at the expected versions of appends whose stream has moved on:
// they may be the same events, from an earlier try.
func (c *committer) readStanding(ctx context.Context, b *batch, taken []*pending) error {
	var moved []*pending
	var no, last, above, upto []int64
	for _, p := range taken {
		p.standing = nil
		if t := b.tail(p.stream); p.expected < t.stored {
			moved = append(moved, p)
			no, last = append(no, t.no), append(last, t.last)
			above = append(above, int64(p.expected))
			upto = append(upto, int64(p.expected)+int64(len(p.events)))
		}
	}
	if len(moved) == 0 {
		return nil
	}
	rows, err := c.conn.Query(ctx, selectStanding, no, last, above, upto)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var ord, pos int64
		var id [16]byte
		if err := rows.Scan(&ord, &id, &pos); err != nil {
			return err
		}
		p := moved[ord-1]
		p.standing = append(p.standing, place{id, pos})
	}
	return rows.Err()
}

const (
	insertStreams = `INSERT INTO log.streams (no, version, last_pos, name)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])`

	updateStreams = `UPDATE log.streams s SET version = u.version, last_pos = u.last
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) u (no, version, last) WHERE s.no = u.no`

	insertEvents = `INSERT INTO log.events (pos, stream, version, id, name, data, correlation, causation, actor, trace, link)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::uuid[], $5::text[], $6::bytea[], $7::uuid[], $8::uuid[], $9::text[], $10::text[], $11::bytea[])`

	moveHead = `UPDATE log.head SET pos = $1`

	// channel gets the head, once per commit: a NOTIFY per append would cost more than half of
	// the throughput.
	channel = "watchtower_log"
	notify  = `SELECT pg_notify('` + channel + `', $1)`
)

// write sends the batch's rows and COMMIT in one round trip.
func (c *committer) write(ctx context.Context, b *batch) error {
	c.crash(beforeCommit)
	q := &pgx.Batch{}
	if no, version, last, name := b.streams(true); len(no) > 0 {
		q.Queue(insertStreams, no, version, last, name)
	}
	if no, version, last, _ := b.streams(false); len(no) > 0 {
		q.Queue(updateStreams, no, version, last)
	}
	q.Queue(insertEvents, b.pos, b.stream, b.version, b.id, b.name, b.data, b.correlation, b.causation, b.actor, b.trace, b.link)
	q.Queue(moveHead, b.head)
	q.Queue(notify, strconv.FormatInt(b.head, 10))
	q.Queue(`COMMIT`)
	results := c.conn.SendBatch(ctx, q)
	for range q.Len() - 1 {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // the same error
			return beforeLast(err)
		}
	}
	if err := results.Close(); err != nil { // the error of COMMIT
		return err
	}
	c.crash(afterCommit)
	c.log.bell.Ring(b.head)
	return nil
}

// beforeLast marks a server error on a statement before COMMIT. The server executes statements
// in order, so it has not reached COMMIT. A broken connection proves nothing.
func beforeLast(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return &uncommittedError{err}
	}
	return err
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Limits of one batch of appends.
const (
	batchAppends = 1000
	batchEvents  = 10_000
	batchBytes   = 8 << 20

	// batchTimeout is when a batch is given up that makes no progress.
	batchTimeout = 30 * time.Second
	// batchRetry is how long a batch is tried again while it fails without a
	// trace and a little later may do: a restart of the server takes seconds.
	batchRetry = 10 * time.Second
)

// committer is the one goroutine of a process that appends. It has a connection of
// its own, so that readers who take all of the pool's cannot hold up appends.
type committer struct {
	log       *Log
	partition int64
	crash     func(point string)

	conn     *pgx.Conn // nil: not connected
	past     int64     // the first position that has no partition; 0: not known
	extended bool      // by the database transaction under way
}

func (c *committer) run() {
	defer c.hangUp()
	for {
		select {
		case p := <-c.log.queue:
			c.commit([]*pending{p}, true)
			continue
		case <-c.log.open.Done():
		}
		select {
		case p := <-c.log.queue: // came before the end
			c.commit([]*pending{p}, true)
		default:
			return
		}
	}
}

// commit sees to it that each append gets an answer. more allows it to take further
// appends along.
func (c *committer) commit(taken []*pending, more bool) {
	wait := retryFirst
	deadline := time.Now().Add(batchRetry)
	for {
		var err error
		taken, err = c.try(taken, more)
		again := Transient(err) || errors.Is(err, context.DeadlineExceeded) // of the batch, not of a caller
		switch {
		case len(taken) == 0:
			return
		case c.log.alive.Err() != nil:
			fail(taken, event.ErrClosed)
			return
		case !again && len(taken) > 1:
			// One of them is not to the database's liking: let it fail alone.
			for _, p := range taken {
				c.commit([]*pending{p}, false)
			}
			return
		case !again || time.Now().After(deadline):
			fail(taken, fmt.Errorf("append: %w", err))
			return
		}
		c.log.logger.Warn("appends are tried again", "appends", len(taken), "err", err)
		_ = pause(c.log.alive, wait) // if it ends early, the next try says so
		wait = min(2*wait, retryMost)
	}
}

func fail(taken []*pending, err error) {
	for _, p := range taken {
		p.tell(answer{err: err})
	}
}

// try commits the appends and whatever has come meanwhile in one database
// transaction. It returns those that have no answer, with the reason: of them
// nothing was written.
func (c *committer) try(taken []*pending, more bool) ([]*pending, error) {
	ctx, cancel := context.WithTimeout(c.log.alive, batchTimeout)
	defer cancel()
	b, err := c.begin(ctx, taken)
	if err != nil {
		c.abandon()
		if more { // who waits meanwhile shares the fate of these, and does not queue up behind it
			taken = c.collect(taken)
		}
		return taken, err
	}
	if more {
		known := len(taken)
		taken = c.collect(taken)
		err = c.readTails(ctx, b, taken[known:])
	}
	if err == nil {
		err = c.readStanding(ctx, b, taken)
	}
	if err != nil {
		c.abandon()
		return taken, err
	}
	taken = claim(taken)
	for _, p := range taken {
		p.answer = answer{}
		b.decide(p)
	}
	if len(b.pos) == 0 {
		c.abandon()
	} else if err := c.write(ctx, b); err != nil {
		clean := c.uncommitted(err)
		c.abandon()
		if clean {
			return unclaim(taken), err
		}
		fail(taken, fmt.Errorf("append: %w: %w", event.ErrUnknown, err))
		return nil, nil
	}
	for _, p := range taken {
		p.tell(p.answer)
	}
	return nil, nil
}

// claim keeps the appends whose callers still wait: from here on they may stand.
func claim(taken []*pending) []*pending {
	kept := taken[:0]
	for _, p := range taken {
		if p.state.CompareAndSwap(held, sent) {
			kept = append(kept, p)
		}
	}
	return kept
}

// unclaim gives back appends that were not committed after all.
func unclaim(taken []*pending) []*pending {
	kept := taken[:0]
	for _, p := range taken {
		if p.state.CompareAndSwap(sent, held) {
			kept = append(kept, p)
		}
	}
	return kept
}

// collect takes further appends, as far as they are waiting now.
func (c *committer) collect(taken []*pending) []*pending {
	events, bytes := 0, 0
	for _, p := range taken {
		events, bytes = events+len(p.events), bytes+p.weight()
	}
	for len(taken) < batchAppends && events < batchEvents && bytes < batchBytes {
		select {
		case p := <-c.log.queue:
			taken = append(taken, p)
			events, bytes = events+len(p.events), bytes+p.weight()
		default:
			return taken
		}
	}
	return taken
}

const (
	lockHead = `SELECT pos FROM log.head FOR UPDATE`

	selectTails = `SELECT name, no, version, last_pos FROM log.streams WHERE name = ANY($1::text[])`
)

// begin connects if need be, takes the head row's lock and reads where the streams
// of the appends stand. READ COMMITTED is what makes this right: each statement
// after the lock sees all that was committed before it.
func (c *committer) begin(ctx context.Context, taken []*pending) (*batch, error) {
	if c.conn == nil {
		conn, err := pgx.ConnectConfig(ctx, c.log.config)
		if err != nil {
			return nil, err
		}
		c.conn, c.past = conn, 0
	}
	var b *batch
	q := &pgx.Batch{}
	q.Queue(`BEGIN`)
	q.Queue(lockHead).QueryRow(func(row pgx.Row) error {
		var head int64
		err := row.Scan(&head)
		b = newBatch(head)
		return err
	})
	q.Queue(selectTails, names(taken)).Query(func(rows pgx.Rows) error { return scanTails(rows, b) })
	if err := c.conn.SendBatch(ctx, q).Close(); err != nil {
		return nil, err
	}
	return b, c.extend(ctx, b.head)
}

// extend makes partitions ahead of need: rarely, as each lasts for millions of
// positions, and inside the database transaction, which undoes it if it fails.
func (c *committer) extend(ctx context.Context, head int64) error {
	ahead := max(c.partition, 2*(batchEvents+event.MaxAppend))
	if c.past-head > ahead/2 {
		return nil
	}
	c.extended = true
	return c.conn.QueryRow(ctx, `SELECT log.extend($1, $2)`, head+ahead, c.partition).Scan(&c.past)
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
		t := b.tail(event.Stream(name))
		t.no, t.last = no, last
		t.version, t.stored = event.Version(version), event.Version(version) //nolint:gosec // counts events
	}
	return rows.Err()
}

const selectStanding = `
SELECT u.ord, e.id, e.pos
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY u (no, last, above, upto, ord)
CROSS JOIN LATERAL (
  SELECT e.id, e.pos FROM log.events e
  WHERE e.stream = u.no AND e.version > u.above AND e.version <= u.upto AND e.pos BETWEEN u.no AND u.last
) e
ORDER BY u.ord, e.pos`

// readStanding reads, for appends whose stream has moved past the version they
// expect, which events stand there: perhaps their own.
func (c *committer) readStanding(ctx context.Context, b *batch, taken []*pending) error {
	var moved []*pending
	var no, last, above, upto []int64
	for _, p := range taken {
		p.standing = nil
		if t := b.tail(p.stream); p.expected < t.stored {
			moved = append(moved, p)
			no, last = append(no, t.no), append(last, t.last)
			above = append(above, int64(p.expected))                    //nolint:gosec // below stored
			upto = append(upto, int64(p.expected)+int64(len(p.events))) //nolint:gosec // as above
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

	insertEvents = `INSERT INTO log.events (pos, stream, version, id, name, data, correlation, causation, actor, trace)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::uuid[], $5::text[], $6::bytea[], $7::uuid[], $8::uuid[], $9::text[], $10::text[])`

	moveHead = `UPDATE log.head SET pos = $1`

	// channel is told the head with each commit: once a commit, as a NOTIFY for
	// each append would cost more than half of the throughput.
	channel = "watchtower_log"
	notify  = `SELECT pg_notify('` + channel + `', $1)`
)

// write sends the batch's rows and COMMIT in one go.
func (c *committer) write(ctx context.Context, b *batch) error {
	c.crash(beforeCommit)
	q := &pgx.Batch{}
	if no, version, last, name := b.streams(true); len(no) > 0 {
		q.Queue(insertStreams, no, version, last, name)
	}
	if no, version, last, _ := b.streams(false); len(no) > 0 {
		q.Queue(updateStreams, no, version, last)
	}
	q.Queue(insertEvents, b.pos, b.stream, b.version, b.id, b.name, b.data, b.correlation, b.causation, b.actor, b.trace)
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
	if err := results.Close(); err != nil { // that of COMMIT
		return err
	}
	c.extended = false
	c.crash(afterCommit)
	c.log.bell.ring(b.head)
	return nil
}

// beforeLast marks what the server itself says about a statement before COMMIT: it
// works them off in turn, so it has not come to that one. A connection that breaks
// says nothing.
func beforeLast(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return &uncommittedError{err}
	}
	return err
}

// uncommitted reports whether write's error says that the batch does not stand.
func (c *committer) uncommitted(err error) bool {
	var before *uncommittedError
	return errors.As(err, &before) || c.inside()
}

// inside reports whether the server has told us that the database transaction
// goes on, or has failed but not ended.
func (c *committer) inside() bool {
	return !c.conn.IsClosed() && c.conn.PgConn().TxStatus() != 'I'
}

// abandon leaves the connection outside of any database transaction, or gives it up.
func (c *committer) abandon() {
	if c.conn == nil {
		return
	}
	if c.inside() {
		ctx, cancel := context.WithTimeout(c.log.alive, closeTimeout)
		defer cancel()
		if _, err := c.conn.Exec(ctx, `ROLLBACK`); err != nil {
			c.hangUp()
			return
		}
	}
	if c.extended { // undone
		c.past, c.extended = 0, false
	}
	if c.conn.IsClosed() {
		c.hangUp()
	}
}

func (c *committer) hangUp() {
	if c.conn != nil {
		closeConn(c.conn)
		c.conn = nil
	}
}

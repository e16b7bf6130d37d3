package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Limits of one batch of appends.
const (
	batchAppends = 1000
	batchEvents  = 10_000
	batchBytes   = 2 << 20
	// batchShare is how many bytes of one actor's appends a batch has, or one append with more. All
	// other appends wait for the batch.
	batchShare = 512 << 10

	// batchTimeout is the time after which a batch without progress is given up.
	batchTimeout = 30 * time.Second
	// batchRetry is how long a batch is retried while it fails without effect on a transient
	// error: a restart of the server takes seconds.
	batchRetry = 10 * time.Second
)

// committer is the only goroutine of a process that appends. It has its own connection, so that
// readers that use up the pool cannot block appends.
type committer struct {
	log       *Log
	partition int64
	crash     func(point string)

	conn *pgx.Conn // nil: not connected
	past int64     // the first position without a partition; 0: unknown
}

func (c *committer) run() {
	defer c.hangUp()
	for c.log.line.Begin() {
		if p, ok := c.log.line.Next(); ok { // otherwise its caller has just left
			c.commit([]*pending{p}, true)
		}
	}
}

// commit makes sure that each append gets an answer. more allows further appends in the batch.
func (c *committer) commit(taken []*pending, more bool) {
	wait := retryFirst
	deadline := time.Now().Add(batchRetry)
	for {
		var err error
		taken, err = c.try(taken, more)
		again := Transient(err) || errors.Is(err, context.DeadlineExceeded) // DeadlineExceeded of the batch, not of a caller
		switch {
		case len(taken) == 0:
			return
		case c.log.alive.Err() != nil:
			fail(taken, eventlog.ErrClosed)
			return
		case full(err): // the disk stays full: callers get the error at once and may go elsewhere
			fail(taken, fmt.Errorf("append: %w", err))
			return
		case !again && len(taken) > 1:
			// The database refuses one of them: commit them one by one, so that it fails alone.
			for _, p := range taken {
				c.commit([]*pending{p}, false)
			}
			return
		case !again || time.Now().After(deadline):
			fail(taken, fmt.Errorf("append: %w", err))
			return
		}
		c.log.logger.Warn("retrying appends", "appends", len(taken), "err", err)
		_ = pause(c.log.alive, wait) // if it ends early, the next try returns the error
		wait = min(2*wait, retryMost)
	}
}

func fail(taken []*pending, err error) {
	for _, p := range taken {
		p.tell(answer{err: err})
	}
}

// try commits the appends, and others that arrive meanwhile, in one database transaction. It
// returns the appends without an answer, with the reason. Nothing of these was written.
func (c *committer) try(taken []*pending, more bool) ([]*pending, error) {
	ctx, cancel := context.WithTimeout(c.log.alive, batchTimeout)
	defer cancel()
	b, err := c.begin(ctx, taken)
	if err != nil {
		c.abandon()
		if more { // appends that wait now join this batch, instead of queueing behind it
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
		fail(taken, fmt.Errorf("append: %w: %w", eventlog.ErrUnknown, err))
		return nil, nil
	}
	for _, p := range taken {
		p.tell(p.answer)
	}
	return nil, nil
}

// claim keeps the appends whose callers still wait. From here on they may be committed.
func claim(taken []*pending) []*pending {
	kept := taken[:0]
	for _, p := range taken {
		if p.state.CompareAndSwap(held, sent) {
			kept = append(kept, p)
		}
	}
	return kept
}

// unclaim takes back the claim of appends that were not committed.
func unclaim(taken []*pending) []*pending {
	kept := taken[:0]
	for _, p := range taken {
		if p.state.CompareAndSwap(sent, held) {
			kept = append(kept, p)
		}
	}
	return kept
}

// collect adds appends that are waiting now, by turns of their actors. So an append does not wait
// for all large appends of another actor that came before it.
func (c *committer) collect(taken []*pending) []*pending {
	events, bytes := 0, 0
	for _, p := range taken {
		events, bytes = events+len(p.events), bytes+p.weight()
	}
	for len(taken) < batchAppends && events < batchEvents && bytes < batchBytes {
		p, ok := c.log.line.Next()
		if !ok {
			return taken
		}
		taken = append(taken, p)
		events, bytes = events+len(p.events), bytes+p.weight()
	}
	return taken
}

// uncommitted reports whether write's error means that the batch was not committed.
func (c *committer) uncommitted(err error) bool {
	var before *uncommittedError
	return errors.As(err, &before) || c.inside()
}

// inside reports whether the server's last answer says that the database transaction is open,
// or failed and not ended.
func (c *committer) inside() bool {
	return !c.conn.IsClosed() && c.conn.PgConn().TxStatus() != 'I'
}

// abandon ends the connection's database transaction, or closes the connection.
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

package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

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
		case full(err): // and stays so: the callers are told at once, and may be somewhere else
			fail(taken, fmt.Errorf("append: %w", err))
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

package postgres

import (
	"context"
	"errors"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/recent"
)

// recentReaders is the number of subscriptions from which on the log's end is kept in memory.
// With fewer, each asks the server for events that pass its filter: a replica without leases
// needs few of the others' events.
const recentReaders = 4

// news returns a channel that is closed when there may be more to read: in the tail while it is
// held, otherwise in the log.
func (l *Log) news() <-chan struct{} {
	grown, held := l.recent.News()
	if held {
		return grown
	}
	return l.bell.Wait()
}

// follow keeps the tail up to date while it has enough readers, until the log closes.
func (l *Log) follow() {
	defer l.recent.Lose()
	for l.recent.Worthwhile(l.open) == nil {
		head, err := l.Head(l.open)
		if err == nil {
			l.recent.Begin(head)
			err = l.keepUp(l.open, head)
			l.recent.Lose()
		}
		if err != nil && l.open.Err() == nil {
			l.logger.Debug("the log's end is read again", "err", err)
			_ = pause(l.open, listenPause) // the loop condition sees its end
		}
	}
}

// keepUp reads the log's end after a position until reading fails, or too few readers remain.
func (l *Log) keepUp(ctx context.Context, after eventlog.Position) error {
	wait := pollBusy
	for l.recent.Enough() {
		rung := l.bell.Wait()
		b, err := l.page(ctx, after, eventlog.Filter{}, pageMost)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if b.Next > after {
			l.recent.Grow(b)
			after, wait = b.Next, pollBusy
		}
		if b.Live && !recent.Await(ctx, rung, wait) {
			wait = min(2*wait, pollIdle)
		}
	}
	return nil
}

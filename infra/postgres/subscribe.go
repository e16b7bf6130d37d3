package postgres

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/domain/event"
)

// How a subscription waits. The bell is rung by this process's commits and by
// notifications of others'; it may stay silent (a pooler between us and the server
// swallows notifications), so there is always a look at the log as well.
const (
	pollBusy = 20 * time.Millisecond // after something came
	pollIdle = time.Second           // the most, when nothing comes
)

// Subscribe yields batches after a position, waits at the head and goes on. The
// first batch that is Live says that it has caught up; after that, batches come
// when the log has grown.
func (l *Log) Subscribe(ctx context.Context, after event.Position, f event.Filter, max int) iter.Seq2[event.Batch, error] {
	return func(yield func(event.Batch, error) bool) {
		l.listen.Do(func() { l.running.Go(l.listener) })
		reader := ctx
		ctx, cancel := context.WithCancel(reader)
		defer cancel()
		defer context.AfterFunc(l.open, cancel)()

		wait, caughtUp, trouble := pollBusy, false, false
		for {
			rung := l.bell.wait()
			b, err := l.page(ctx, after, f, max)
			if ctx.Err() != nil {
				if err = reader.Err(); err == nil {
					err = event.ErrClosed
				}
				yield(event.Batch{}, err)
				return
			}
			if gone := new(archive.GoneError); errors.As(err, &gone) || errors.Is(err, errBeyond) {
				yield(event.Batch{}, err)
				return
			}
			if err != nil {
				if !trouble {
					l.logger.Warn("subscription is interrupted", "position", uint64(after), "err", err)
				}
				trouble, wait = true, min(2*wait, pollIdle)
				_ = pause(ctx, wait) // its end shows above
				continue
			}
			trouble = false
			if b.Next > after || b.Live && !caughtUp {
				if !yield(b, nil) {
					return
				}
				wait, caughtUp = pollBusy, caughtUp || b.Live
			}
			after = b.Next
			if b.Live && !awaken(ctx, rung, wait) {
				wait = min(2*wait, pollIdle)
			}
		}
	}
}

// awaken waits for the bell and reports whether it rang.
func awaken(ctx context.Context, rung <-chan struct{}, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-rung:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// listenPause is between tries to listen.
const listenPause = 500 * time.Millisecond

// listener turns other processes' notifications into rings until the log closes.
func (l *Log) listener() {
	for l.open.Err() == nil {
		if err := l.listenOn(l.open); err != nil && l.open.Err() == nil {
			l.logger.Warn("notifications are interrupted, polling goes on", "err", err)
			_ = pause(l.open, listenPause) // its end shows above
		}
	}
}

// listenOn listens on one connection until that breaks.
func (l *Log) listenOn(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, l.config)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, `LISTEN `+channel); err != nil {
		return err
	}
	l.bell.again() // for what was missed meanwhile
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		head, err := strconv.ParseInt(n.Payload, 10, 64)
		if err != nil { // not ours, but who knows
			l.bell.again()
			continue
		}
		l.bell.ring(head)
	}
}

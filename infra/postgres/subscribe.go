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
	"github.com/tempo-watchtower/watchtower/infra/recent"
)

// How a subscription waits. The bell is rung by this process's commits and by
// notifications of others'; it may stay silent (a pooler between us and the server
// swallows notifications), so there is always a look at the log as well.
const (
	pollBusy = 20 * time.Millisecond // after something came
	pollIdle = time.Second           // the most, when nothing comes
	// lookEvery is how soon a subscription that found nothing for it asks the server again:
	// one of narrow interest would ask with every commit of a busy log.
	lookEvery = 10 * time.Millisecond
)

// Subscribe yields batches after a position, waits at the head and goes on. The
// first batch that is Live says that it has caught up; after that, batches come
// when the log has grown.
func (l *Log) Subscribe(ctx context.Context, after event.Position, f event.Filter, max int) iter.Seq2[event.Batch, error] {
	return func(yield func(event.Batch, error) bool) {
		l.listen.Do(func() {
			l.running.Go(l.listener)
			l.running.Go(l.follow)
		})
		reader := ctx
		defer l.recent.Join()()
		ctx, cancel := context.WithCancel(reader)
		defer cancel()
		defer context.AfterFunc(l.open, cancel)()

		s := &subscribed{Place: recent.Start(after), log: l, filter: f, max: max, wait: pollBusy}
		for {
			rung := l.news()
			b, err := s.read(ctx)
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
				s.interrupted(ctx, err)
				continue
			}
			if s.news(b) && !yield(b, nil) {
				return
			}
			if b.Live && !recent.Await(ctx, rung, s.Patience(s.wait)) {
				s.wait = min(2*s.wait, pollIdle)
			}
		}
	}
}

// subscribed is a subscription: its place in the log and how it waits.
type subscribed struct {
	recent.Place
	log     *Log
	vain    time.Time // of the last read of the server that found nothing
	filter  event.Filter
	max     int
	wait    time.Duration
	trouble bool
}

// read reads on: where it has caught up, what is in memory. A position is looked for in
// the log itself first, which may not have it.
func (s *subscribed) read(ctx context.Context) (event.Batch, error) {
	if s.CaughtUp {
		if b, ok := s.log.recent.Read(s.At, s.filter, min(max(s.max, 1), pageMost)); ok {
			return b, nil
		}
	}
	if err := pause(ctx, lookEvery-time.Since(s.vain)); err != nil {
		return event.Batch{}, err
	}
	b, err := s.log.page(ctx, s.At, s.filter, s.max)
	s.vain = time.Time{}
	if b.Live && len(b.Events) == 0 {
		s.vain = time.Now()
	}
	return b, err
}

// news moves on, and reports whether the reader gets the batch.
func (s *subscribed) news(b event.Batch) bool {
	s.trouble = false
	if !s.Advance(b, time.Now()) {
		return false
	}
	s.wait = pollBusy
	return true
}

// interrupted waits a while after trouble.
func (s *subscribed) interrupted(ctx context.Context, err error) {
	if !s.trouble {
		s.log.logger.Warn("subscription is interrupted", "position", uint64(s.At), "err", err)
	}
	s.trouble, s.wait = true, min(2*s.wait, pollIdle)
	_ = pause(ctx, s.wait) // its end shows by itself
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
	l.bell.Again() // for what was missed meanwhile
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		head, err := strconv.ParseInt(n.Payload, 10, 64)
		if err != nil { // not ours, but who knows
			l.bell.Again()
			continue
		}
		l.bell.Ring(head)
	}
}

package postgres

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tempo-watchtower/watchtower/domain/archive"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/recent"
)

// A subscription waits for the bell, which is rung by this process's commits and by other
// processes' notifications. The bell may stay silent (a pooler in between drops notifications),
// so the log is polled as well.
const (
	pollBusy = 20 * time.Millisecond // after a batch
	pollIdle = time.Second           // the maximum, while idle
	// lookEvery is the pause before a subscription that found no events asks the server again:
	// with a narrow filter it would otherwise ask at every commit of a busy log.
	lookEvery = 10 * time.Millisecond
)

// Subscribe yields batches after a position, waits at the head and continues. The first Live
// batch means that it has caught up; after that, batches come when the log has grown.
func (l *Log) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
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
					err = eventlog.ErrClosed
				}
				yield(eventlog.Batch{}, err)
				return
			}
			if gone := new(archive.GoneError); errors.As(err, &gone) || errors.Is(err, errBeyond) {
				yield(eventlog.Batch{}, err)
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

// subscribed is the state of a subscription: its position and its waiting times.
type subscribed struct {
	recent.Place
	log     *Log
	vain    time.Time // time of the last read of the server that found nothing
	filter  eventlog.Filter
	max     int
	wait    time.Duration
	trouble bool
}

// read returns the next batch: from memory once caught up. Before that it reads the log itself,
// which detects a position beyond its head.
func (s *subscribed) read(ctx context.Context) (eventlog.Batch, error) {
	if s.CaughtUp {
		if b, ok := s.log.recent.Read(s.At, s.filter, min(max(s.max, 1), pageMost)); ok {
			return b, nil
		}
	}
	if err := pause(ctx, lookEvery-time.Since(s.vain)); err != nil {
		return eventlog.Batch{}, err
	}
	b, err := s.log.page(ctx, s.At, s.filter, s.max)
	s.vain = time.Time{}
	if b.Live && len(b.Events) == 0 {
		s.vain = time.Now()
	}
	return b, err
}

// news advances the position, and reports whether the reader gets the batch.
func (s *subscribed) news(b eventlog.Batch) bool {
	s.trouble = false
	if !s.Advance(b, time.Now()) {
		return false
	}
	s.wait = pollBusy
	return true
}

// interrupted waits after an error.
func (s *subscribed) interrupted(ctx context.Context, err error) {
	if !s.trouble {
		s.log.logger.Warn("subscription is interrupted", "position", uint64(s.At), "err", err)
	}
	s.trouble, s.wait = true, min(2*s.wait, pollIdle)
	_ = pause(ctx, s.wait) // the loop sees the end of ctx
}

// listenPause is the pause between attempts to listen.
const listenPause = 500 * time.Millisecond

// listener rings the bell for other processes' notifications until the log closes.
func (l *Log) listener() {
	for l.open.Err() == nil {
		if err := l.listenOn(l.open); err != nil && l.open.Err() == nil {
			l.logger.Warn("notifications are interrupted, polling continues", "err", err)
			_ = pause(l.open, listenPause) // the loop condition sees its end
		}
	}
}

// listenOn listens on one connection until it breaks.
func (l *Log) listenOn(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, l.config)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, `LISTEN `+channel); err != nil {
		return err
	}
	l.bell.Again() // for notifications missed meanwhile
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		head, err := strconv.ParseInt(n.Payload, 10, 64)
		if err != nil { // not our payload, ring all the same
			l.bell.Again()
			continue
		}
		l.bell.Ring(head)
	}
}

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
	// tellEvery is how often a subscription is told that the log has grown by what does
	// not pass its filter: that moves its checkpoint, and no more.
	tellEvery = 100 * time.Millisecond
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
		defer l.recent.join()()
		ctx, cancel := context.WithCancel(reader)
		defer cancel()
		defer context.AfterFunc(l.open, cancel)()

		s := &subscribed{log: l, at: after, told: after, filter: f, max: max, wait: pollBusy}
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
			if b.Live && !awaken(ctx, rung, s.patience()) {
				s.wait = min(2*s.wait, pollIdle)
			}
		}
	}
}

// subscribed is where a subscription stands.
type subscribed struct {
	log      *Log
	at, told event.Position // looked at, and told of
	since    time.Time      // it was last told of anything
	vain     time.Time      // it last asked the server, which had nothing for it
	filter   event.Filter
	max      int
	caughtUp bool
	wait     time.Duration
	trouble  bool
}

// read reads on: where it has caught up, what is in memory. A position is looked for in
// the log itself first, which may not have it.
func (s *subscribed) read(ctx context.Context) (event.Batch, error) {
	if s.caughtUp {
		if b, ok := s.log.recent.read(s.at, s.filter, s.max); ok {
			return b, nil
		}
	}
	if err := pause(ctx, lookEvery-time.Since(s.vain)); err != nil {
		return event.Batch{}, err
	}
	b, err := s.log.page(ctx, s.at, s.filter, s.max)
	s.vain = time.Time{}
	if b.Live && len(b.Events) == 0 {
		s.vain = time.Now()
	}
	return b, err
}

// news moves on, and reports whether the reader is to be told.
func (s *subscribed) news(b event.Batch) bool {
	now, behind := time.Now(), s.caughtUp && b.Live && len(b.Events) == 0
	s.at, s.trouble = b.Next, false
	switch {
	case b.Next == s.told && (!b.Live || s.caughtUp):
		return false // nothing at all
	case behind && now.Sub(s.since) < tellEvery:
		return false // it is told with the next events, or soon
	}
	s.told, s.since, s.wait, s.caughtUp = b.Next, now, pollBusy, s.caughtUp || b.Live
	return true
}

// patience is how long to wait for the bell.
func (s *subscribed) patience() time.Duration {
	if s.at > s.told {
		return min(s.wait, tellEvery)
	}
	return s.wait
}

// interrupted waits a while after trouble.
func (s *subscribed) interrupted(ctx context.Context, err error) {
	if !s.trouble {
		s.log.logger.Warn("subscription is interrupted", "position", uint64(s.at), "err", err)
	}
	s.trouble, s.wait = true, min(2*s.wait, pollIdle)
	_ = pause(ctx, s.wait) // its end shows by itself
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

package eventstoredb

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/recent"
)

// searchWindow is how many events the server looks at between two checkpoints of a
// filtered subscription.
const searchWindow = 500

// narrow returns the filter that the server applies; nil if filtering here is cheaper. The
// server filters by prefixes of streams or of names, not both: the rest is filtered here.
func (l *Log) narrow(f eventlog.Filter) *esdb.SubscriptionFilter {
	has := func(prefixes []string) bool {
		for _, p := range prefixes {
			if p == "" {
				return false
			}
		}
		return len(prefixes) > 0
	}
	switch {
	case len(f.Streams) == 0 && has(f.Names):
		return &esdb.SubscriptionFilter{Type: esdb.EventFilterType, Prefixes: f.Names}
	case len(f.Names) == 0 && has(f.Streams):
		prefixes := make([]string, len(f.Streams))
		for i, p := range f.Streams {
			prefixes[i] = l.prefix + p
		}
		return &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: prefixes}
	case l.prefix != "":
		return &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{l.prefix}}
	}
	return nil
}

// everything is the filter of the live subscription: every event of this log. For events
// that the server filters out it would report positions too late.
func (l *Log) everything() *esdb.SubscriptionFilter {
	if f := l.narrow(eventlog.Filter{}); f != nil {
		return f
	}
	return esdb.ExcludeSystemEventsFilter()
}

// item is one message of a subscription, or the error that ended it.
type item struct {
	Notification
	err error
}

// feed is a subscription of the server's.
type feed struct {
	items chan item
	stop  context.CancelFunc
}

// feedAhead is how many items wait for the reader.
const feedAhead = 256

// subscribe has the server send the events after a position. The feed ends with ctx, with
// the log, or by stop; the server waits for its goroutine when it closes.
func (l *Log) subscribe(ctx context.Context, after eventlog.Position, filter *esdb.SubscriptionFilter) feed {
	inner, cancel := context.WithCancel(ctx)
	f := feed{items: make(chan item, feedAhead), stop: cancel}
	go func() {
		defer context.AfterFunc(l.open, cancel)()
		err := l.pump(inner, f.items, after, filter)
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case l.open.Err() != nil:
			err = eventlog.ErrClosed
		}
		select {
		case f.items <- item{err: err}:
		case <-inner.Done():
			select { // a reader that is still there learns why
			case f.items <- item{err: err}:
			default:
			}
		}
	}()
	return f
}

// pump passes on the server's messages until the subscription ends.
func (l *Log) pump(ctx context.Context, items chan<- item, after eventlog.Position, filter *esdb.SubscriptionFilter) error {
	options := esdb.SubscribeToAllOptions{From: place(after), Filter: filter, MaxSearchWindow: searchWindow, CheckpointInterval: 1}
	return l.server.Subscribe(ctx, options, func(n Notification) error {
		if n.At == 0 && !n.CaughtUp || n.At > 0 && n.At <= after {
			return nil
		}
		select {
		case items <- item{Notification: n}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// Subscribe yields batches after a position, waits at the head and goes on. The first
// batch that is Live says that it has caught up; after that, batches come when the log
// has grown. Subscriptions that have caught up read the log's end from memory, where one
// subscription of the server's brings it for all of them.
func (l *Log) Subscribe(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		if !l.keepsTail() {
			yield(eventlog.Batch{}, eventlog.ErrClosed)
			return
		}
		defer l.recent.Join()()
		reader := ctx
		ctx, cancel := context.WithCancel(reader)
		defer cancel()
		defer context.AfterFunc(l.open, cancel)()
		s := &subscriber{Place: recent.Start(after), Log: l, filter: f, max: atLeastOne(max), yield: yield}
		wait := retryFirst
		for !s.left {
			from := s.At
			rung, _ := l.recent.News()
			err := s.read(ctx)
			switch {
			case s.left:
				return
			case reader.Err() != nil:
				yield(eventlog.Batch{}, reader.Err())
				return
			case l.open.Err() != nil:
				yield(eventlog.Batch{}, eventlog.ErrClosed)
				return
			case errors.As(err, new(*eventlog.Stuck)):
				yield(eventlog.Batch{}, err)
				return
			case err == nil:
				wait = retryFirst
				recent.Await(ctx, rung, s.Patience(s.lookEvery))
				continue
			}
			if s.At > from {
				wait = retryFirst
			}
			l.logger.Warn("subscription is interrupted", "position", uint64(s.At), "err", err)
			_ = pause(ctx, wait) // its end shows above
			wait = min(2*wait, retryMost)
		}
	}
}

// subscriber is a subscription of the port's.
type subscriber struct {
	recent.Place
	*Log
	filter eventlog.Filter
	max    int
	yield  func(eventlog.Batch, error) bool
	left   bool
}

// read yields the events after the place: from memory if the tail reaches back so far, else
// from the server.
func (s *subscriber) read(ctx context.Context) error {
	for s.CaughtUp && !s.left {
		b, ok := s.recent.Read(s.At, s.filter, s.max)
		if !ok {
			break
		}
		s.give(b)
		if b.Live {
			return nil
		}
	}
	if s.left || s.CaughtUp && s.recent.Behind(s.At) {
		return nil // a page was newer than the subscription that all share
	}
	for b, err := range s.ReadAll(ctx, s.At, s.filter, s.max) {
		if err != nil {
			return err
		}
		if s.give(b); s.left {
			return nil
		}
	}
	return nil
}

// give moves on, and yields a batch that says something.
func (s *subscriber) give(b eventlog.Batch) {
	if s.Advance(b, time.Now()) {
		s.left = !s.yield(b, nil)
	}
}

// lookEvery is for how long a server may send nothing before it is asked whether there
// is something: a connection that is well does not say that the subscription is.
const lookEvery = 10 * time.Second

// errMute ends a subscription that sent nothing although the log has grown.
var errMute = errors.New("eventstoredb: the server sends nothing")

// keepsTail starts the goroutine that keeps the log's end in memory; false when the log is
// closed.
func (l *Log) keepsTail() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open.Err() != nil {
		return false
	}
	l.tailing.Do(func() { l.running.Go(l.keepTail) })
	return true
}

// keepTail keeps the log's end in memory while there are subscriptions, until the log
// closes.
func (l *Log) keepTail() {
	defer l.recent.Lose()
	for wait := retryFirst; l.recent.Worthwhile(l.open) == nil; wait = min(2*wait, retryMost) {
		head, err := l.Head(l.open)
		if err == nil {
			l.recent.Begin(head)
			err = l.followFrom(l.open, head)
			l.recent.Lose()
			wait = retryFirst
		}
		if err != nil && l.open.Err() == nil {
			l.logger.Warn("the log's end cannot be read", "err", err)
			_ = pause(l.open, wait) // its end shows above
		}
	}
}

// followFrom adds the events after a position to the log's end in memory, across
// interruptions, until there are no subscribers or an event cannot be decoded.
func (l *Log) followFrom(ctx context.Context, at eventlog.Position) error {
	for wait := retryFirst; l.recent.Enough() && ctx.Err() == nil; wait = min(2*wait, retryMost) {
		next, err := l.follow(ctx, at)
		switch {
		case err == nil, ctx.Err() != nil:
			return err
		case errors.As(err, new(*eventlog.Stuck)):
			return err
		case next > at:
			at, wait = next, retryFirst
		}
		if kind, ok := kindOf(err); ok && kind == SlowConsumer {
			l.logger.Debug("the server dropped the log's subscription as too slow", "position", uint64(at))
			continue // it has done all it could
		}
		l.logger.Warn("the log's subscription is interrupted", "position", uint64(at), "err", err)
		_ = pause(ctx, wait) // its end shows above
	}
	return ctx.Err()
}

// follow adds the events that one subscription of the server's brings after a position,
// until it ends or there are no subscribers. It returns the position of the last event.
func (l *Log) follow(ctx context.Context, at eventlog.Position) (eventlog.Position, error) {
	feed := l.subscribe(ctx, at, l.everything())
	defer feed.stop()
	silence := time.NewTimer(l.lookEvery)
	defer silence.Stop()
	var owed eventlog.Position // the head, when it was last asked for
	for {
		silence.Reset(l.lookEvery)
		var got item
		select {
		case got = <-feed.items:
		case <-l.recent.Changed():
			if !l.recent.Enough() {
				return at, nil
			}
			continue
		case <-silence.C:
			if owed > at { // it was there a silence ago
				return at, errMute
			}
			var err error
			if owed, err = l.Head(ctx); err != nil {
				return at, err
			}
			continue
		case <-ctx.Done():
			return at, ctx.Err()
		}
		b, err := l.gather(feed, got, at)
		if b.Next > at {
			at = b.Next
			l.recent.Grow(b)
			l.seen.note(at, at)
		}
		if err != nil {
			return at, err
		}
	}
}

// gather makes a batch of an item and the items that wait behind it.
func (l *Log) gather(feed feed, got item, at eventlog.Position) (eventlog.Batch, error) {
	b := eventlog.Batch{Next: at, Live: true}
	for {
		switch {
		case got.err != nil:
			return b, got.err
		case got.Event != nil && l.ours(got.Event) && got.At > b.Next:
			recorded, err := l.record(got.Event)
			if err != nil {
				return b, err
			}
			b.Events, b.Next = append(b.Events, recorded), got.At
		}
		if len(b.Events) == pageMost {
			return b, nil
		}
		select {
		case got = <-feed.items:
		default:
			return b, nil
		}
	}
}

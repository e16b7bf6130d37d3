package eventstoredb

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// searchWindow is how many events the server looks at between two checkpoints of a
// filtered subscription.
const searchWindow = 500

// narrow is the filter that the server applies, nil for one that is not worth it. It
// knows either prefixes of streams or prefixes of names; what is left over is filtered
// here.
func (l *Log) narrow(f event.Filter) *esdb.SubscriptionFilter {
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

// everything is what a subscriber that has caught up is sent: all that is ours, whatever
// its filter. Of what the server filters out it tells no position soon enough.
func (l *Log) everything() *esdb.SubscriptionFilter {
	if f := l.narrow(event.Filter{}); f != nil {
		return f
	}
	return esdb.ExcludeSystemEventsFilter()
}

// item is something that a subscription was sent.
type item struct {
	event    *esdb.RecordedEvent // nil for a checkpoint
	at       event.Position
	caughtUp bool
	err      error // the last
}

// feed is a subscription of the server's.
type feed struct {
	items chan item
	stop  context.CancelFunc
}

// feedAhead is how many items wait for the reader.
const feedAhead = 256

// subscribe has the server send what is after a position. The feed ends with ctx, with
// the log, or by stop; its goroutine is the supervisor's, who waits for it.
func (l *Log) subscribe(ctx context.Context, after event.Position, filter *esdb.SubscriptionFilter) feed {
	inner, cancel := context.WithCancel(ctx)
	f := feed{items: make(chan item, feedAhead), stop: cancel}
	go func() {
		defer context.AfterFunc(l.open, cancel)()
		err := l.pump(inner, f.items, after, filter)
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case l.open.Err() != nil:
			err = event.ErrClosed
		}
		select {
		case f.items <- item{err: err}:
		case <-inner.Done():
			select { // whoever reads finds why, or has gone
			case f.items <- item{err: err}:
			default:
			}
		}
	}()
	return f
}

// pump passes on what the server sends until that ends.
func (l *Log) pump(ctx context.Context, items chan<- item, after event.Position, filter *esdb.SubscriptionFilter) (err error) {
	c, err := l.server.acquire(ctx)
	if err != nil {
		return err
	}
	defer l.server.release(c)
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p}
		}
		if err != nil {
			err = l.server.classed(ctx, c, err)
		}
	}()
	// Until the server has answered, ctx does not end the call: the client would read what
	// gRPC is writing.
	began, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	late := time.AfterFunc(callLimit, cancel)
	s, err := c.SubscribeToAll(began, esdb.SubscribeToAllOptions{
		From: place(after), Filter: filter, MaxSearchWindow: searchWindow, CheckpointInterval: 1,
	})
	if !late.Stop() {
		err = errSlow
	}
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // never fails
	defer context.AfterFunc(ctx, cancel)()
	for {
		got, err := received(s.Recv())
		if err != nil {
			return err
		}
		if got.at == 0 && !got.caughtUp || got.at > 0 && got.at <= after {
			continue
		}
		select {
		case items <- got:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// received is what a subscription was sent; the zero item for nothing of interest.
func received(e *esdb.SubscriptionEvent) (item, error) {
	switch {
	case e.SubscriptionDropped != nil:
		if err := e.SubscriptionDropped.Error; err != nil {
			return item{}, err
		}
		return item{}, status.Error(codes.Unavailable, "the subscription was dropped")
	case e.CaughtUp != nil:
		return item{caughtUp: true}, nil
	case e.CheckPointReached != nil:
		return item{at: event.Position(e.CheckPointReached.Commit)}, nil
	case e.EventAppeared != nil && e.EventAppeared.Event != nil:
		return item{event: e.EventAppeared.Event, at: event.Position(e.EventAppeared.Event.Position.Commit)}, nil
	}
	return item{}, nil
}

// Subscribe yields batches after a position, waits at the head and goes on. The first
// batch that is Live says that it has caught up; after that, batches come when the log
// has grown.
func (l *Log) Subscribe(ctx context.Context, after event.Position, f event.Filter, max int) iter.Seq2[event.Batch, error] {
	return func(yield func(event.Batch, error) bool) {
		reader := ctx
		ctx, cancel := context.WithCancel(reader)
		defer cancel()
		defer context.AfterFunc(l.open, cancel)()
		s := &subscriber{Log: l, filter: f, max: atLeastOne(max), at: after, yield: yield}
		wait := retryFirst
		for !s.left {
			from := s.at
			err := s.catchUp(ctx)
			if err == nil && !s.left {
				err = s.follow(ctx)
			}
			switch {
			case s.left:
				return
			case reader.Err() != nil:
				yield(event.Batch{}, reader.Err())
				return
			case l.open.Err() != nil:
				yield(event.Batch{}, event.ErrClosed)
				return
			case s.stuck(err):
				yield(event.Batch{}, err)
				return
			}
			if s.at > from {
				wait = retryFirst
			}
			l.logger.Warn("subscription is interrupted", "position", uint64(s.at), "err", err)
			_ = pause(ctx, wait) // its end shows above
			wait = min(2*wait, retryMost)
		}
	}
}

// subscriber is a subscription of the port's.
type subscriber struct {
	*Log
	filter   event.Filter
	max      int
	at       event.Position
	yield    func(event.Batch, error) bool
	caughtUp bool
	left     bool
}

// stuck reports whether an error is of what was read, and not of the reading.
func (s *subscriber) stuck(err error) bool {
	var stuck *event.Stuck
	return errors.As(err, &stuck)
}

// catchUp reads what is there.
func (s *subscriber) catchUp(ctx context.Context) error {
	for b, err := range s.ReadAll(ctx, s.at, s.filter, s.max) {
		if err != nil {
			return err
		}
		if !s.give(b) {
			return nil
		}
	}
	return nil
}

func (s *subscriber) give(b event.Batch) bool {
	if b.Next > s.at || b.Live && !s.caughtUp {
		s.at, s.caughtUp = b.Next, s.caughtUp || b.Live
		s.left = !s.yield(b, nil)
	}
	return !s.left
}

// lookEvery is for how long a server may send nothing before it is asked whether there
// is something: a connection that is well does not say that the subscription is.
const lookEvery = 10 * time.Second

// errMute ends a subscription that was not sent what the log holds.
var errMute = errors.New("eventstoredb: the server has fallen silent")

// follow passes on what the server sends as it comes, until that ends.
func (s *subscriber) follow(ctx context.Context) error {
	feed := s.subscribe(ctx, s.at, s.everything())
	defer feed.stop()
	silence := time.NewTimer(s.lookEvery)
	defer silence.Stop()
	var owed event.Position // the head, when it was last asked for
	for {
		silence.Reset(s.lookEvery) // not while the reader took its time: the server was not heard then
		var got item
		select {
		case got = <-feed.items:
		case <-silence.C:
			if owed > s.at { // it was there a silence ago
				return errMute
			}
			var err error
			if owed, err = s.Head(ctx); err != nil {
				return err
			}
			continue
		case <-ctx.Done():
			return ctx.Err()
		}
		b := event.Batch{Next: s.at}
		for more := true; more; {
			if err := s.take(&b, got); err != nil || len(b.Events) == s.max {
				if !s.give(b) || err != nil {
					return err
				}
				b = event.Batch{Next: s.at}
			}
			select {
			case got = <-feed.items:
			default:
				more = false
			}
		}
		b.Live = true
		if !s.give(b) {
			return nil
		}
	}
}

// take adds an item to a batch.
func (s *subscriber) take(b *event.Batch, got item) error {
	switch {
	case got.err != nil:
		return got.err
	case got.event == nil || !s.ours(got.event): // nothing, or not ours to count
		return nil
	}
	if s.passesOf(s.filter, got.event) {
		recorded, err := s.record(got.event)
		if err != nil {
			return err
		}
		b.Events = append(b.Events, recorded)
	}
	b.Next = got.at
	s.seen.note(got.at, got.at)
	return nil
}

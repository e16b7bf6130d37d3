package eventstoredb

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Limits of one read. No call is open while a reader works on its events.
const (
	streamPageMost = 500
	pageLeast      = 64  // of the log, even if the reader wants fewer: many may be the server's own
	pageMost       = 500 // above it a page may be too large for a message
	tailFirst      = 16
)

// ReadStream yields the stream's events with version > after.
func (l *Log) ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for after < maxVersion {
			page, err := during(l, func() ([]*esdb.RecordedEvent, error) {
				return retry(ctx, l, func(ctx context.Context) ([]*esdb.RecordedEvent, error) {
					return l.streamPage(ctx, stream, after, streamPageMost)
				})
			})
			for _, e := range page {
				r, err := l.record(e)
				if !yield(r, err) || err != nil {
					return
				}
				after = r.Version
			}
			if err != nil {
				yield(eventlog.Recorded{}, err)
			}
			if err != nil || len(page) < streamPageMost {
				return
			}
		}
	}
}

// streamPage reads a stream from the event after a version, once; nothing if there is no
// stream.
func (l *Log) streamPage(ctx context.Context, stream eventlog.Stream, after eventlog.Version, most uint64) ([]*esdb.RecordedEvent, error) {
	return l.server.ReadStream(ctx, l.prefix+string(stream), esdb.ReadStreamOptions{
		Direction: esdb.Forwards, From: esdb.Revision(uint64(after)),
	}, most)
}

// Version returns the version of the stream's last event; 0 when there is no stream.
func (l *Log) Version(ctx context.Context, stream eventlog.Stream) (eventlog.Version, error) {
	return during(l, func() (eventlog.Version, error) {
		return retry(ctx, l, func(ctx context.Context) (eventlog.Version, error) { return l.version(ctx, stream) })
	})
}

// version reads a stream's version, once.
func (l *Log) version(ctx context.Context, stream eventlog.Stream) (eventlog.Version, error) {
	page, err := l.server.ReadStream(ctx, l.prefix+string(stream), esdb.ReadStreamOptions{
		Direction: esdb.Backwards, From: esdb.End{},
	}, 1)
	if err != nil || len(page) == 0 {
		return 0, err
	}
	return eventlog.Version(page[0].EventNumber + 1), nil
}

// lastFirst reads the log backwards from a position.
func lastFirst(from esdb.AllPosition) esdb.ReadAllOptions {
	return esdb.ReadAllOptions{Direction: esdb.Backwards, From: from}
}

// Head returns the position of this log's last event; 0 when there is none. Foreign events
// behind it are read backwards, once by each process.
func (l *Log) Head(ctx context.Context) (eventlog.Position, error) {
	return during(l, func() (eventlog.Position, error) { return l.head(ctx) })
}

func (l *Log) head(ctx context.Context) (eventlog.Position, error) {
	known, last := l.seen.get()
	var top eventlog.Position
	var from esdb.AllPosition = esdb.End{}
	for most := uint64(tailFirst); ; most = min(4*most, pageMost) {
		page, err := l.back(ctx, from, most)
		if err != nil {
			return 0, err
		}
		for _, e := range page {
			at := eventlog.Position(e.Position.Commit)
			top = max(top, at)
			switch {
			case at <= known:
			case l.ours(e):
				known, last = at, at
			default:
				continue
			}
			l.seen.note(max(top, known), last)
			return last, nil
		}
		if uint64(len(page)) < most { // the log's beginning
			l.seen.note(top, 0)
			return 0, nil
		}
		from = page[len(page)-1].Position
	}
}

// Ago returns a position before the last n events of the log, foreign events included; 0 if
// the log has fewer. They are read for that, as no position can be calculated.
func (l *Log) Ago(ctx context.Context, events int) (eventlog.Position, error) {
	return during(l, func() (eventlog.Position, error) { return l.ago(ctx, events) })
}

func (l *Log) ago(ctx context.Context, events int) (eventlog.Position, error) {
	var from esdb.AllPosition = esdb.End{}
	for left := events + 1; ; { // a read goes on after its position
		most := uint64(min(max(left, 1), pageMost))
		page, err := l.back(ctx, from, most)
		if err != nil || uint64(len(page)) < most {
			return 0, err
		}
		last := page[len(page)-1].Position
		if left -= len(page); left <= 0 {
			return eventlog.Position(last.Commit), nil
		}
		from = last
	}
}

// back is a page of the log, backwards.
func (l *Log) back(ctx context.Context, from esdb.AllPosition, most uint64) ([]*esdb.RecordedEvent, error) {
	return retry(ctx, l, func(ctx context.Context) ([]*esdb.RecordedEvent, error) {
		return l.server.ReadAll(ctx, lastFirst(from), most)
	})
}

// ours reports whether an event is one of this log's: not the server's, nor another's
// that shares it.
func (l *Log) ours(e *esdb.RecordedEvent) bool {
	return strings.HasPrefix(e.StreamID, l.prefix) && !system(e.StreamID) && !system(e.EventType)
}

// place is where the server is to go on after a position.
func place(after eventlog.Position) esdb.AllPosition {
	if after == 0 {
		return esdb.Start{}
	}
	return esdb.Position{Commit: uint64(after), Prepare: uint64(after)}
}

// ReadAll yields batches after a position up to the log's head at the time of the call. The
// first page is filtered here, the pages after it by the server.
func (l *Log) ReadAll(ctx context.Context, after eventlog.Position, f eventlog.Filter, max int) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		head, err := l.Head(ctx)
		if err == nil && after > head {
			err = &Failure{Behind, nil}
		}
		if err != nil {
			yield(eventlog.Batch{Next: after}, err)
			return
		}
		r := &reader{Log: l, filter: f, max: atLeastOne(max), at: after, head: head, yield: yield}
		if l.narrow(f) != nil && r.page(ctx) && !r.done {
			r.scan(ctx)
		}
		for !r.done && r.page(ctx) {
		}
	}
}

func atLeastOne(n int) int { return max(n, 1) }

// reader is a read of the log up to a head.
type reader struct {
	*Log
	filter eventlog.Filter
	max    int
	at     eventlog.Position
	head   eventlog.Position
	yield  func(eventlog.Batch, error) bool
	done   bool
}

// page reads the next page of the log, unfiltered, and yields the events that pass. It
// reports whether to go on.
func (r *reader) page(ctx context.Context) bool {
	if r.at >= r.head {
		return r.end(nil)
	}
	most := uint64(min(max(r.max, pageLeast), pageMost))
	page, err := during(r.Log, func() ([]*esdb.RecordedEvent, error) {
		return retry(ctx, r.Log, func(ctx context.Context) ([]*esdb.RecordedEvent, error) {
			return r.server.ReadAll(ctx, esdb.ReadAllOptions{Direction: esdb.Forwards, From: place(r.at)}, most)
		})
	})
	if err != nil {
		return r.fail(err)
	}
	var events []eventlog.Recorded
	next := r.at
	for _, e := range page {
		at := eventlog.Position(e.Position.Commit)
		if at <= r.at || at > r.head { // a read begins at its position, and after the head is later
			continue
		}
		if next = at; !r.passes(e) {
			continue
		}
		recorded, err := r.record(e)
		if err != nil {
			return r.give(events, lastOf(events, r.at)) && r.fail(err)
		}
		if events = append(events, recorded); len(events) == r.max && at < r.head {
			if !r.give(events, at) {
				return false
			}
			events = nil
		}
	}
	switch {
	case next >= r.head:
		return r.end(events)
	case uint64(len(page)) < most: // it must not be taken for the end
		return r.give(events, next) && r.fail(&Failure{Behind, nil})
	}
	return r.give(events, next)
}

func lastOf(events []eventlog.Recorded, or eventlog.Position) eventlog.Position {
	if len(events) == 0 {
		return or
	}
	return events[len(events)-1].Position
}

func (l *Log) passesOf(f eventlog.Filter, e *esdb.RecordedEvent) bool {
	return l.ours(e) && f.Passes(eventlog.Stream(e.StreamID[len(l.prefix):]), e.EventType)
}

func (r *reader) passes(e *esdb.RecordedEvent) bool { return r.passesOf(r.filter, e) }

// give yields the events up to a position, unless nothing has changed.
func (r *reader) give(events []eventlog.Recorded, next eventlog.Position) bool {
	if next == r.at && len(events) == 0 {
		return true
	}
	r.at = next
	if !r.yield(eventlog.Batch{Events: events, Next: next}, nil) {
		r.done = true
	}
	return !r.done
}

// end yields the last batch.
func (r *reader) end(events []eventlog.Recorded) bool {
	r.done = true
	r.at = max(r.at, r.head)
	r.yield(eventlog.Batch{Events: events, Next: r.at, Live: true}, nil)
	return false
}

func (r *reader) fail(err error) bool {
	r.done = true
	r.yield(eventlog.Batch{Next: r.at}, err)
	return false
}

// quiet is how long the server may say nothing on the way to the head before we look
// ourselves: those before version 23.10 do not say that a subscription has caught up.
const quiet = time.Second

// scan has the server search for events that pass. It ends where the server has caught up,
// or falls silent: pages go on from its last checkpoint and find the head.
func (r *reader) scan(ctx context.Context) {
	began := time.Now()
	for wait := retryFirst; !r.done; wait = min(2*wait, retryMost) {
		from := r.at
		err := r.scanOnce(ctx)
		if err == nil || r.done {
			return
		}
		if r.at > from {
			began, wait = time.Now(), retryFirst
		}
		if time.Since(began) > r.limit || !Transient(err) || pause(ctx, wait) != nil {
			r.fail(err)
		}
	}
}

func (r *reader) scanOnce(ctx context.Context) error {
	feed := r.subscribe(ctx, r.at, r.narrow(r.filter))
	defer feed.stop()
	var events []eventlog.Recorded
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		var got item
		select {
		case got = <-feed.items:
			timer.Reset(quiet)
		case <-timer.C:
			r.give(events, lastOf(events, r.at))
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case got.err != nil:
			if r.give(events, lastOf(events, r.at)) {
				return got.err
			}
			return nil
		case got.CaughtUp, got.At > r.head:
			r.give(events, lastOf(events, r.at))
			return nil
		case got.Event == nil: // a checkpoint
			if !r.give(events, max(r.at, got.At)) {
				return nil
			}
			events = nil
			continue
		}
		if !r.passes(got.Event) {
			continue
		}
		recorded, err := r.record(got.Event)
		if err != nil {
			if r.give(events, lastOf(events, r.at)) {
				return err
			}
			return nil
		}
		events = append(events, recorded)
		switch {
		case got.At == r.head:
			r.end(events)
			return nil
		case len(events) == r.max:
			if !r.give(events, got.At) {
				return nil
			}
			events = nil
		}
	}
}

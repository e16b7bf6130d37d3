package tail

import (
	"context"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
)

// Refresh returns a stream's state with all events that are in the log when it is called, and all
// that have woken the wait. read applies a stream's events after those in from. A state may be
// given to many callers: read must not change what it points to.
//
// All waits for a stream share its reads. The first caller that needs a read makes it, and the
// others wait for its result. So an event costs one read of its stream, however many wait for it.
// Without a wait (nil), or without room for it, the caller reads for itself.
func Refresh[S any](ctx context.Context, w *Wait, stream eventlog.Stream, from handler.Result[S], read func(ctx context.Context, from handler.Result[S]) (handler.Result[S], error)) (handler.Result[S], error) {
	if w == nil || !w.join(stream) {
		return read(ctx, from)
	}
	for {
		state, r, turn := w.tail.next(stream, w.joined[stream])
		if shared, is := state.(handler.Result[S]); is && shared.Version > from.Version {
			from = shared
		}
		switch {
		case r == nil:
			return from, nil
		case turn:
			return lead(ctx, w.tail, stream, r, from, read)
		}
		select {
		case <-r.ended:
		case <-ctx.Done():
			return from, ctx.Err()
		}
		if r.err != nil && r.number >= w.joined[stream] {
			return from, r.err
		}
	}
}

// lead makes a read for all waits. Its error is theirs too, unless only this caller has left.
func lead[S any](ctx context.Context, t *Tail, stream eventlog.Stream, r *reading, from handler.Result[S], read func(ctx context.Context, from handler.Result[S]) (handler.Result[S], error)) (to handler.Result[S], err error) {
	ok := false
	defer func() {
		switch {
		case ok && err == nil:
			t.endRead(stream, r, to, to.Version, nil)
		case ok && ctx.Err() == nil:
			t.endRead(stream, r, nil, 0, err)
		default: // the caller has left, or panics: another one reads
			t.endRead(stream, r, nil, 0, nil)
		}
	}()
	to, err = read(ctx, from)
	ok = true
	return to, err
}

// watch is a stream that callers wait for.
type watch struct {
	waiters map[chan struct{}]struct{}
	told    eventlog.Version // of the last event that the tail has reported
	// Reads are numbered from 1. begun is the last one that began.
	begun uint64
	// done is the last successful read, state its result, and at the result's version.
	done  uint64
	state any
	at    eventlog.Version
	// since is the first read that began after the tail did: earlier reads may lack events that
	// the tail does not report.
	since uint64
	// after is the first read that began after the last reported event. It contains the event. An
	// earlier read contains it if its version says so.
	after uint64
	now   *reading // in progress
}

// reading is a read in progress. err may be read once ended is closed.
type reading struct {
	number uint64
	ended  chan struct{}
	err    error
}

// next returns the shared state of a stream, and the read that a wait needs, if it needs a newer
// state: turn means that the caller has to make it. first is the first read that began after the
// wait joined.
func (t *Tail) next(stream eventlog.Stream, first uint64) (state any, r *reading, turn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.waiting[stream]
	switch {
	case w.done >= max(first, w.since) && (w.at >= w.told || w.done >= w.after):
		return w.state, nil, false
	case w.now != nil:
		return w.state, w.now, false
	}
	w.begun++
	w.now = &reading{number: w.begun, ended: make(chan struct{})}
	return w.state, w.now, true
}

// endRead ends a read. A nil state means that it failed.
func (t *Tail) endRead(stream eventlog.Stream, r *reading, state any, at eventlog.Version, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.waiting[stream] // the reader waits, so it is still the same
	w.now, r.err = nil, err
	if state != nil {
		w.done, w.state, w.at = r.number, state, at
	}
	close(r.ended)
}

package postgres

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

const (
	// Bounds of what is kept of the log's end: at least so much, and at most twice that.
	recentEvents = 4096
	recentBytes  = 8 << 20 // of their data
	// recentReaders is how many subscriptions the log's end is read for. Fewer ask the
	// server for what passes their filters: a replica that holds no leases needs little of
	// what the others append.
	recentReaders = 4
)

// recent is the end of the log in memory. It is read once for all subscriptions of this
// process, which look for their events in it: a dozen that ask the server for each append
// cost more than the appends. Whoever is behind it, or ahead, reads the log itself.
type recent struct {
	bell    *bell         // rings when there is more in it, and when it is lost
	changed chan struct{} // holds one when there are enough readers, or no more

	mu      sync.Mutex
	readers int
	held    bool
	after   event.Position // what follows this is in it,
	next    event.Position // up to this
	events  []event.Recorded
	bytes   int
}

func newRecent() *recent { return &recent{bell: newBell(), changed: make(chan struct{}, 1)} }

// join counts one more reader, until left is called.
func (r *recent) join() (left func()) {
	r.count(1)
	return func() { r.count(-1) }
}

func (r *recent) count(by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.wanted()
	r.readers += by
	if r.wanted() != before {
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}
}

func (r *recent) wanted() bool { return r.readers >= recentReaders }

// worthwhile waits until there are readers enough, or ctx ends.
func (r *recent) worthwhile(ctx context.Context) error {
	for !r.enough() && ctx.Err() == nil {
		select {
		case <-r.changed:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (r *recent) enough() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wanted()
}

// read is the batch after a position, as [Log.page] would give it; ok is false when that
// position is not within it.
func (r *recent) read(after event.Position, f event.Filter, most int) (b event.Batch, ok bool) {
	r.mu.Lock()
	held, from, next, events := r.held, r.after, r.next, r.events
	r.mu.Unlock()
	if !held || after < from || after > next {
		return b, false
	}
	first := sort.Search(len(events), func(i int) bool { return events[i].Position > after })
	b.Next = next
	limit := min(max(most, 1), pageMost)
	for _, e := range events[first:] {
		if !f.Passes(e.Stream, e.Name) {
			continue
		}
		b.Events = append(b.Events, e)
		if len(b.Events) == limit {
			b.Next = e.Position
			break
		}
	}
	b.Live = b.Next == next
	return b, true
}

// grow adds what was read after its end. What is in it is never written to again:
// readers look at it without the lock.
func (r *recent) grow(b event.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range b.Events {
		r.bytes += len(e.Data)
	}
	r.events = append(r.events, b.Events...)
	r.next = b.Next
	if len(r.events) <= 2*recentEvents && r.bytes <= 2*recentBytes {
		return
	}
	drop := 0
	for len(r.events)-drop > recentEvents || r.bytes > recentBytes {
		r.after = r.events[drop].Position
		r.bytes -= len(r.events[drop].Data)
		drop++
	}
	r.events = slices.Clone(r.events[drop:])
}

// begin makes it an empty one at the log's head.
func (r *recent) begin(head event.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.after, r.next, r.events, r.bytes = true, head, head, nil, 0
}

// lose has everybody read the log itself, until it begins anew.
func (r *recent) lose() {
	r.mu.Lock()
	r.held, r.events, r.bytes = false, nil, 0
	r.mu.Unlock()
	r.bell.again() // who waited for it listens to the log now
}

// news is a channel that is closed when there may be more to read: in it while it is
// held, and in the log otherwise.
func (l *Log) news() <-chan struct{} {
	l.recent.mu.Lock()
	defer l.recent.mu.Unlock()
	if l.recent.held {
		return l.recent.bell.wait()
	}
	return l.bell.wait()
}

// follow keeps it up with the log, while it has readers enough, until the log closes.
func (l *Log) follow() {
	defer l.recent.lose()
	for l.recent.worthwhile(l.open) == nil {
		head, err := l.Head(l.open)
		if err == nil {
			l.recent.begin(head)
			err = l.keepUp(l.open, head)
			l.recent.lose()
		}
		if err != nil && l.open.Err() == nil {
			l.logger.Debug("the log's end is read anew", "err", err)
			_ = pause(l.open, listenPause) // its end shows above
		}
	}
}

// keepUp reads the log's end after a position until that fails, or too few read it.
func (l *Log) keepUp(ctx context.Context, after event.Position) error {
	wait := pollBusy
	for l.recent.enough() {
		rung := l.bell.wait()
		b, err := l.page(ctx, after, event.Filter{}, pageMost)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if b.Next > after {
			l.recent.grow(b)
			l.recent.bell.again()
			after, wait = b.Next, pollBusy
		}
		if b.Live && !awaken(ctx, rung, wait) {
			wait = min(2*wait, pollIdle)
		}
	}
	return nil
}

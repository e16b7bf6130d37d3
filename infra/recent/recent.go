// Package recent keeps the end of an event log in memory, for all subscriptions of a
// process: a dozen that ask the server for each append cost more than the appends.
// Readers behind or ahead of the kept end read the log itself.
package recent

import (
	"context"
	"slices"
	"sort"
	"sync"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Bounds of a Tail: it keeps at least this much, and at most twice that.
const (
	MaxEvents = 4096
	MaxBytes  = 8 << 20 // of event data
)

// Tail is the end of the log in memory. It is safe for concurrent use.
type Tail struct {
	bell    *Bell         // rings when the tail grows, begins or is lost
	changed chan struct{} // holds one value when the readers became enough, or too few
	least   int           // readers that make the tail worth its work

	mu      sync.Mutex
	readers int
	held    bool
	after   eventlog.Position // the tail holds all events above this position,
	next    eventlog.Position // up to this one
	events  []eventlog.Recorded
	bytes   int
}

// New returns a tail that holds nothing. It is worth its work from least readers on.
func New(least int) *Tail {
	return &Tail{bell: NewBell(), changed: make(chan struct{}, 1), least: least}
}

// Join counts one more reader, until left is called.
func (r *Tail) Join() (left func()) {
	r.count(1)
	return func() { r.count(-1) }
}

func (r *Tail) count(by int) {
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

func (r *Tail) wanted() bool { return r.readers >= r.least }

// Worthwhile waits until enough readers have joined, or ctx ends.
func (r *Tail) Worthwhile(ctx context.Context) error {
	for !r.Enough() && ctx.Err() == nil {
		select {
		case <-r.changed:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// Changed holds a value when Enough may have another answer.
func (r *Tail) Changed() <-chan struct{} { return r.changed }

// Enough reports whether enough readers have joined.
func (r *Tail) Enough() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wanted()
}

// Read returns the batch after a position: at most limit events that pass the filter. ok
// is false when the position is not within the tail.
func (r *Tail) Read(after eventlog.Position, f eventlog.Filter, limit int) (b eventlog.Batch, ok bool) {
	r.mu.Lock()
	held, from, next, events := r.held, r.after, r.next, r.events
	r.mu.Unlock()
	if !held || after < from || after > next {
		return b, false
	}
	first := sort.Search(len(events), func(i int) bool { return events[i].Position > after })
	b.Next = next
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

// Behind reports whether the tail is held and ends below a position.
func (r *Tail) Behind(at eventlog.Position) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held && r.next < at
}

// News returns the channel that is closed when the tail grows, begins or is lost; false
// while it is lost.
func (r *Tail) News() (<-chan struct{}, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bell.Wait(), r.held
}

// Grow adds a batch that was read after the tail's end, and wakes the readers. It never
// changes events that are in the tail already: readers look at them without the lock.
func (r *Tail) Grow(b eventlog.Batch) {
	defer r.bell.Again()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range b.Events {
		r.bytes += len(e.Data)
	}
	r.events = append(r.events, b.Events...)
	r.next = b.Next
	if len(r.events) <= 2*MaxEvents && r.bytes <= 2*MaxBytes {
		return
	}
	drop := 0
	for len(r.events)-drop > MaxEvents || r.bytes > MaxBytes {
		r.after = r.events[drop].Position
		r.bytes -= len(r.events[drop].Data)
		drop++
	}
	r.events = slices.Clone(r.events[drop:])
}

// Begin makes the tail an empty one at the log's head, and wakes the readers.
func (r *Tail) Begin(head eventlog.Position) {
	defer r.bell.Again()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.after, r.next, r.events, r.bytes = true, head, head, nil, 0
}

// Lose empties the tail: until it begins again, readers read the log itself.
func (r *Tail) Lose() {
	defer r.bell.Again()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.events, r.bytes = false, nil, 0
}

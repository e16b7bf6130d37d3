package tail

import (
	"context"
	"slices"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The size of the log's end in memory, shared by all readers.
const (
	recentEvents = 4096
	recentBytes  = 8 << 20 // of the events' data
)

// recent is the end of the log in memory: all events after from, up to upto.
type recent struct {
	begun      bool
	from, upto eventlog.Position
	events     []eventlog.Recorded
	bytes      int
}

func (r *recent) add(batch eventlog.Batch) {
	for _, e := range batch.Events {
		r.events = append(r.events, e)
		r.bytes += len(e.Data)
	}
	r.upto = max(r.upto, batch.Next)
	forget := 0
	for left := len(r.events); left > recentEvents || r.bytes > recentBytes; left-- {
		r.bytes -= len(r.events[forget].Data)
		r.from = r.events[forget].Position
		r.events[forget] = eventlog.Recorded{} // releases its data
		forget++
	}
	r.events = r.events[forget:]
}

// after returns up to most of the events in memory after a position.
func (r *recent) after(p eventlog.Position, most int) eventlog.Batch {
	i, _ := slices.BinarySearchFunc(r.events, p+1, func(e eventlog.Recorded, p eventlog.Position) int {
		switch {
		case e.Position < p:
			return -1
		case e.Position > p:
			return 1
		}
		return 0
	})
	found := r.events[i:]
	if len(found) <= most {
		return eventlog.Batch{Events: slices.Clone(found), Next: max(p, r.upto), Live: true}
	}
	return eventlog.Batch{Events: slices.Clone(found[:most]), Next: found[most-1].Position}
}

// Read returns up to most of the log's events after a position: from memory near the end of
// the log, otherwise from the store. The filter only saves the store work; events from
// memory are not filtered. A Live batch ends at the last event that this process has seen.
func (t *Tail) Read(ctx context.Context, after eventlog.Position, f eventlog.Filter, most int) (eventlog.Batch, error) {
	if batch, kept := t.Recent(after, most); kept {
		return batch, nil
	}
	for batch, err := range t.store.ReadAll(ctx, after, f, most) {
		return batch, err // the first of them
	}
	return eventlog.Batch{Next: after, Live: true}, ctx.Err()
}

// Recent is [Tail.Read] from memory alone. It reports false when the store has to be read.
func (t *Tail) Recent(after eventlog.Position, most int) (eventlog.Batch, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.recent.begun || after < t.recent.from {
		return eventlog.Batch{}, false
	}
	return t.recent.after(after, most), true
}

// Grown returns a channel that is closed when there is more to read. [Tail.Listen]
// first, take it before reading, and wait on it after, and nothing is missed.
func (t *Tail) Grown() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.grown
}

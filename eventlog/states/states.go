// Package states gives a reader of many streams the state of each stream as of the event that it
// reads. It remembers recent states, so that a reader of the whole log seldom reads a stream.
package states

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Streams reads single streams of a log.
type Streams interface {
	ReadStream(ctx context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error]
}

// States are the states of streams. It is safe for concurrent use.
type States[S any] struct {
	Store Streams
	// Fold returns the state after one more event. It must not change s, which may still be in use.
	Fold func(s S, r eventlog.Recorded) (S, error)
	// Fixed reports whether no later event changes a state; nil: never.
	Fixed func(s S) bool
	// Size is the number of bytes that a state takes. All remembered states take at most Most, and
	// the last one that was added.
	Size func(s S) int
	Most int
	// Ask, when set, is called before a stream is read. Its error ends the call.
	Ask func(ctx context.Context) error

	mu         sync.Mutex
	young, old map[eventlog.Stream]kept[S]
	bytes      int // of young
	running    map[eventlog.Stream]chan struct{}
}

// kept is a stream's state as of a version.
type kept[S any] struct {
	state S
	at    eventlog.Version
}

// perState is the size of a remembered state beside its own: its stream's name and the map.
const perState = 256

// After returns the state of an event's stream with the event as the last one. Concurrent callers
// with one stream wait for the first of them.
func (m *States[S]) After(ctx context.Context, r eventlog.Recorded) (state S, err error) {
	for asked := false; ; {
		from, known := m.recall(r.Stream)
		switch {
		case known && (from.at == r.Version || m.fixed(from.state)):
			return from.state, nil
		case known && from.at > r.Version:
			from = kept[S]{}
		}
		if !asked && m.Ask != nil && from.at+1 != r.Version {
			if err := m.Ask(ctx); err != nil {
				return state, err
			}
			asked = true
			continue
		}
		ended, others := m.join(r.Stream)
		if others {
			select {
			case <-ended:
				continue
			case <-ctx.Done():
				return state, ctx.Err()
			}
		}
		to, err := m.advance(ctx, from, r)
		m.leave(r.Stream, ended)
		return to.state, err
	}
}

// Reads reports whether [States.After] has to read the event's stream.
func (m *States[S]) Reads(r eventlog.Recorded) bool {
	from, known := m.recall(r.Stream)
	return from.at+1 != r.Version && from.at != r.Version && !(known && m.fixed(from.state))
}

// join returns the end of the stream's call in progress, and whether it is another caller's.
func (m *States[S]) join(stream eventlog.Stream) (ended chan struct{}, others bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ended, others = m.running[stream]; others {
		return ended, true
	}
	if m.running == nil {
		m.running = map[eventlog.Stream]chan struct{}{}
	}
	ended = make(chan struct{})
	m.running[stream] = ended
	return ended, false
}

func (m *States[S]) leave(stream eventlog.Stream, ended chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, stream)
	close(ended)
}

// advance folds the events behind a state up to r, and remembers the result.
func (m *States[S]) advance(ctx context.Context, s kept[S], r eventlog.Recorded) (to kept[S], err error) {
	if s.at+1 == r.Version {
		to.at = r.Version
		to.state, err = m.Fold(s.state, r)
	} else {
		to, err = m.read(ctx, s, r)
	}
	if err == nil {
		m.remember(r.Stream, to)
	}
	return to, err
}

// read reads the events behind a state up to r.
func (m *States[S]) read(ctx context.Context, s kept[S], r eventlog.Recorded) (kept[S], error) {
	for e, err := range m.Store.ReadStream(ctx, r.Stream, s.at) {
		if err != nil {
			return s, fmt.Errorf("read %s: %w", r.Stream, err)
		}
		if s.state, err = m.Fold(s.state, e); err != nil {
			return s, err
		}
		if s.at = e.Version; s.at == r.Version || m.fixed(s.state) {
			return s, nil
		}
	}
	return s, fmt.Errorf("%s ends at version %d, before %d", r.Stream, s.at, r.Version)
}

func (m *States[S]) fixed(s S) bool { return m.Fixed != nil && m.Fixed(s) }

func (m *States[S]) recall(stream eventlog.Stream) (kept[S], bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.young[stream]; ok {
		return k, true
	}
	k, ok := m.old[stream]
	return k, ok
}

// remember keeps a state, unless a later one is kept. When the young states take half of the room,
// they become the old ones, and the old ones are forgotten.
func (m *States[S]) remember(stream eventlog.Stream, k kept[S]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, young := m.young[stream]
	if was.at > k.at || m.old[stream].at > k.at {
		return
	}
	if young {
		m.bytes -= perState + m.Size(was.state)
	}
	size := perState + m.Size(k.state)
	if m.young == nil || m.bytes+size > m.Most/2 {
		m.old, m.young, m.bytes = m.young, map[eventlog.Stream]kept[S]{}, 0
	}
	delete(m.old, stream)
	m.young[stream] = k
	m.bytes += size
}

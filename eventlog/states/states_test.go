package states_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/states"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log is a log in memory that counts the reads of streams.
type log struct {
	all    []eventlog.Recorded
	reads  atomic.Int64
	paused chan struct{} // when set, reads wait for it
}

func (l *log) append(stream string) eventlog.Recorded {
	r := eventlog.Recorded{Stream: eventlog.Stream(stream), Position: eventlog.Position(len(l.all) + 1), Version: 1}
	for _, other := range l.all {
		if other.Stream == r.Stream {
			r.Version++
		}
	}
	l.all = append(l.all, r)
	return r
}

func (l *log) ReadStream(_ context.Context, stream eventlog.Stream, after eventlog.Version) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		l.reads.Add(1)
		if l.paused != nil {
			<-l.paused
		}
		for _, r := range l.all {
			if r.Stream == stream && r.Version > after && !yield(r, nil) {
				return
			}
		}
	}
}

// history is a state: the positions of a stream's events.
func history(s string, r eventlog.Recorded) (string, error) {
	return fmt.Sprint(s, " ", r.Position), nil
}

func want(l *log, r eventlog.Recorded) (s string) {
	for _, other := range l.all {
		if other.Stream == r.Stream && other.Version <= r.Version {
			s, _ = history(s, other)
		}
	}
	return s
}

func size(s string) int { return len(s) }

// In whatever order events are asked for, and however little is remembered, the state is that of
// the events up to the one asked for.
func TestStateIsAsOfTheEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &log{}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			l.append(fmt.Sprint("s", rapid.IntRange(0, 5).Draw(t, "stream")))
		}
		m := &states.States[string]{Store: l, Fold: history, Size: size, Most: rapid.SampledFrom([]int{0, 600, 1200, 1 << 20}).Draw(t, "most")}
		for range 100 {
			r := rapid.SampledFrom(l.all).Draw(t, "event")
			got, err := m.After(t.Context(), r)
			if err != nil || got != want(l, r) {
				t.Fatalf("after event %d: %q, %v; want %q", r.Position, got, err, want(l, r))
			}
		}
	})
}

// A reader of the whole log reads no stream, and one that joins in the middle reads each stream
// once.
func TestReadsAreSeldom(t *testing.T) {
	for _, c := range []struct{ from, reads int }{{0, 0}, {30, 10}} {
		l := &log{}
		for i := range 100 {
			l.append(fmt.Sprint("s", i%10))
		}
		m := &states.States[string]{Store: l, Fold: history, Size: size, Most: 1 << 20}
		for _, r := range l.all[c.from:] {
			if _, err := m.After(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if n := l.reads.Load(); n != int64(c.reads) {
			t.Errorf("from %d on: %d reads", c.from, n)
		}
	}
}

// A state that later events do not change is read once and never again.
func TestFixed(t *testing.T) {
	l := &log{}
	for range 5 {
		l.append("s")
	}
	m := &states.States[string]{Store: l, Fold: history, Size: size, Most: 1 << 20, Fixed: func(s string) bool { return strings.Count(s, " ") == 2 }}
	for _, i := range []int{4, 3, 4} {
		if got, err := m.After(t.Context(), l.all[i]); got != " 1 2" || err != nil {
			t.Errorf("after event %d: %q, %v", i, got, err)
		}
	}
	if n := l.reads.Load(); n != 1 {
		t.Errorf("%d reads", n)
	}
}

// Callers at once with one event share a read, and each is asked before. A caller that gives up
// ends its own call alone.
func TestCallersShareARead(t *testing.T) {
	l := &log{paused: make(chan struct{})}
	l.append("s")
	r := l.append("s")
	var asked atomic.Int64
	m := &states.States[string]{Store: l, Fold: history, Size: size, Most: 1 << 20, Ask: func(context.Context) error { asked.Add(1); return nil }}
	const callers = 8
	var working sync.WaitGroup
	got := make([]string, callers)
	for i := range callers {
		working.Go(func() { got[i], _ = m.After(context.Background(), r) })
	}
	for asked.Load() < callers || l.reads.Load() == 0 {
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		default:
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.After(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up got %v", err)
	}
	close(l.paused)
	working.Wait()
	if !slices.Equal(got, slices.Repeat([]string{" 1 2"}, callers)) || l.reads.Load() != 1 {
		t.Errorf("%q by %d reads", got, l.reads.Load())
	}
}

// An error of a read or of a fold remembers nothing.
func TestErrorsAreNotRemembered(t *testing.T) {
	l := &log{}
	l.append("s")
	r := l.append("s")
	fails := true
	m := &states.States[string]{Store: l, Size: size, Most: 1 << 20, Fold: func(s string, r eventlog.Recorded) (string, error) {
		if fails {
			return "", errors.New("unreadable")
		}
		return history(s, r)
	}}
	if _, err := m.After(t.Context(), r); err == nil {
		t.Error("no error")
	}
	fails = false
	if got, err := m.After(t.Context(), r); got != " 1 2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	r.Version = 9
	if _, err := m.After(t.Context(), r); err == nil {
		t.Error("a version beyond the stream's end has a state")
	}
}

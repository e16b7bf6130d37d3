package recent

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Read returns the same batches as the log: every event that passes, once, by rising
// position, and never a Next beyond the events read. Outside the tail it reports false.
func TestTail(t *testing.T) {
	data := map[bool][]byte{true: make([]byte, 8000), false: make([]byte, 10)}
	rapid.Check(t, func(t *rapid.T) {
		var log []eventlog.Recorded
		r := New(4)
		if _, ok := r.Read(0, eventlog.Filter{}, 1); ok {
			t.Fatal("it has something before it has begun")
		}
		first := eventlog.Position(rapid.Uint64Range(0, 5).Draw(t, "head"))
		r.Begin(first)
		head := first
		filters := []eventlog.Filter{{}, {Streams: []string{"a"}}, {Names: []string{"x."}}, {Streams: []string{"b"}, Names: []string{"y."}}}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "grows") {
				var b eventlog.Batch
				for range rapid.SampledFrom([]int{1, 3, 50, 3000}).Draw(t, "events") {
					head++
					b.Events = append(b.Events, eventlog.Recorded{
						Position: head, Stream: eventlog.Stream([]string{"a", "b", "c"}[head%3]),
						Event: eventlog.Event{Name: []string{"x.v1", "y.v1"}[head%2], Data: data[rapid.Bool().Draw(t, "large")]},
					})
				}
				b.Next = head
				log = append(log, b.Events...)
				r.Grow(b)
				if len(r.events) > 2*MaxEvents || r.bytes > 2*MaxBytes {
					t.Fatalf("it has %d events of %d bytes", len(r.events), r.bytes)
				}
				continue
			}
			after := eventlog.Position(rapid.Uint64Range(0, uint64(head)+2).Draw(t, "after"))
			most, f := rapid.IntRange(1, 5000).Draw(t, "most"), rapid.SampledFrom(filters).Draw(t, "filter")
			b, ok := r.Read(after, f, most)
			if within := after >= r.after && after <= head; ok != within {
				t.Fatalf("after %d: %v, it holds %d to %d", after, ok, r.after, r.next)
			}
			if !ok {
				continue
			}
			want := eventlog.Batch{Next: head, Live: true}
			for _, e := range log {
				if e.Position > after && f.Passes(e.Stream, e.Name) {
					want.Events = append(want.Events, e)
					if len(want.Events) == most {
						want.Next, want.Live = e.Position, e.Position == head
						break
					}
				}
			}
			if diff := cmp.Diff(places(want), places(b)); diff != "" {
				t.Fatal(diff)
			}
		}
		r.Lose()
		if _, ok := r.Read(head, eventlog.Filter{}, 1); ok {
			t.Fatal("it is lost, and read from")
		}
	})
}

// It is read for several readers, and for them alone.
func TestReaders(t *testing.T) {
	const least = 4
	r := New(least)
	var left []func()
	for n := range least {
		if r.Enough() {
			t.Errorf("%d readers are enough", n)
		}
		left = append(left, r.Join())
	}
	if err := r.Worthwhile(t.Context()); err != nil || !r.Enough() {
		t.Errorf("%d readers are not enough: %v", least, err)
	}
	left[0]()
	if r.Enough() {
		t.Error("one left, and they are enough")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := r.Worthwhile(ended); err == nil {
		t.Error("it is worth the while of too few")
	}
}

// places are a batch's positions, streams and names, for comparison.
func places(b eventlog.Batch) (all []string) {
	all = append(all, fmt.Sprint(b.Next, b.Live))
	for _, e := range b.Events {
		all = append(all, fmt.Sprint(e.Position, e.Stream, e.Name))
	}
	return all
}

package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Store is the contract of event stores.
func Store(t *testing.T, open func(t *testing.T) Opened[Log]) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, o Opened[Log])
	}{
		{"append at the expected version", expectedVersion},
		{"conflict at any other version", conflicts},
		{"retried append is one effect", retried},
		{"retry that is not the same conflicts", notTheSame},
		{"append is whole or not at all", whole},
		{"limits", limits},
		{"appended events are read back unchanged", roundTrip},
		{"writers race on one stream", race},
		{"a conflict does not fail its neighbours", neighbours},
		{"a run of appends to one stream", runOnOneStream},
		{"read a stream", readStream},
		{"version of a stream", versionOf},
		{"read all in pages", readAllPages},
		{"read all filtered", readAllFiltered},
		{"filter prefixes are literal", literalPrefixes},
		{"head", head},
		{"a position beyond the head is refused", beyondHead},
		{"subscription goes from history to live", catchUp},
		{"subscriptions beside sixteen writers", besideWriters},
		{"subscription passes filtered events", subscribeFiltered},
		{"subscription wakes promptly", wakes},
		{"subscription ends with its context", subscriptionEnds},
		{"close beside appends and subscriptions", closing},
		{"append cut short tells the truth", cutShort},
		{"data outlives the process", reopened},
		{"histories are linearizable", linearStreams},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func expectedVersion(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	first, err := s.Append(ctx, "one", 0, facts(1)...)
	check(t, err)
	second, err := s.Append(ctx, "one", 1, facts(3)...)
	check(t, err)
	if first.Version != 1 || second.Version != 4 || first.Repeated || second.Repeated {
		t.Fatalf("appended %+v, then %+v", first, second)
	}
	if first.Position == 0 || second.Position <= first.Position {
		t.Fatalf("positions do not rise: %+v, then %+v", first, second)
	}
	other, err := s.Append(ctx, "other", 0, facts(1)...)
	check(t, err)
	if other.Version != 1 || other.Position <= second.Position {
		t.Fatalf("appended to another stream: %+v after %+v", other, second)
	}
	if got := stream(t, s, "one", 0); len(got) != 4 || got[3].Position != second.Position {
		t.Fatalf("the stream reads %+v, the append said %+v", got, second)
	}
}

func conflicts(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	_, err := s.Append(ctx, "one", 0, facts(2)...)
	check(t, err)
	before := stream(t, s, "one", 0)
	for _, c := range []struct {
		stream           eventlog.Stream
		expected, actual eventlog.Version
	}{{"one", 0, 2}, {"one", 1, 2}, {"one", 3, 2}, {"one", 1 << 40, 2}, {"none", 1, 0}, {"none", 7, 0}} {
		_, err := s.Append(ctx, c.stream, c.expected, facts(1)...)
		wantConflict(t, err, eventlog.ConflictError{Stream: c.stream, Expected: c.expected, Actual: c.actual})
	}
	if diff := cmp.Diff(before, stream(t, s, "one", 0)); diff != "" {
		t.Error("a conflicting append left something behind:", diff)
	}
	if got := stream(t, s, "none", 0); len(got) != 0 {
		t.Error("a conflicting append made a stream:", got)
	}
}

func wantConflict(t *testing.T, err error, want eventlog.ConflictError) {
	t.Helper()
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) || errors.Is(err, eventlog.ErrUnknown) {
		t.Fatalf("answered %v, not a conflict", err)
	}
	if diff := cmp.Diff(want, *conflict); diff != "" {
		t.Fatal("conflict:", diff)
	}
}

func retried(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	events := facts(3)
	first, err := s.Append(ctx, "one", 0, events...)
	check(t, err)
	want := first
	want.Repeated = true
	again := func(when string) {
		t.Helper()
		got, err := s.Append(ctx, "one", 0, events...)
		check(t, err)
		if got != want {
			t.Fatalf("retried %s: %+v, first told %+v", when, got, first)
		}
	}
	again("at once")
	_, err = s.Append(ctx, "one", 3, facts(5)...)
	check(t, err)
	_, err = s.Append(ctx, "two", 0, facts(5)...)
	check(t, err)
	again("after others appended")

	middle := facts(2)
	_, err = s.Append(ctx, "one", 8, middle...)
	check(t, err)
	_, err = s.Append(ctx, "one", 10, facts(1)...)
	check(t, err)
	got, err := s.Append(ctx, "one", 8, middle...)
	check(t, err)
	if !got.Repeated || got.Version != 10 {
		t.Fatalf("retried in the middle of the stream: %+v", got)
	}
	part, err := s.Append(ctx, "one", 0, events[:2]...)
	check(t, err)
	if !part.Repeated || part.Version != 2 || part.Position >= first.Position {
		t.Fatalf("the first two of three: %+v", part)
	}
	if n := len(stream(t, s, "one", 0)); n != 11 {
		t.Fatalf("stream has %d events, not 11", n)
	}
}

func notTheSame(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	events := facts(3)
	_, err := s.Append(ctx, "one", 0, events...)
	check(t, err)
	swapped := []eventlog.Event{events[1], events[0], events[2]}
	longer := append(append([]eventlog.Event{}, events...), facts(1)...)
	tail := append(append([]eventlog.Event{}, events[:2]...), facts(1)...)
	for name, c := range map[string]struct {
		expected eventlog.Version
		events   []eventlog.Event
	}{
		"other ids":             {0, facts(3)},
		"other order":           {0, swapped},
		"more than stand there": {0, longer},
		"other tail":            {0, tail},
		"at another version":    {1, events},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Append(ctx, "one", c.expected, c.events...)
			wantConflict(t, err, eventlog.ConflictError{Stream: "one", Expected: c.expected, Actual: 3})
		})
	}
	// The same ids in another stream are different events.
	elsewhere, err := s.Append(ctx, "two", 0, events...)
	check(t, err)
	if elsewhere.Repeated {
		t.Fatal("ids of one stream were treated as ids of another stream")
	}
}

// whole reads while appends of five events run: a reader never sees part of an append.
func whole(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	const appends, size = 100, 5
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range appends {
			if _, err := s.Append(ctx, "one", eventlog.Version(i*size), facts(size)...); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer writer.Wait()
	for seen := 0; seen < appends*size && !t.Failed(); {
		events := stream(t, s, "one", 0)
		if seen = len(events); seen%size != 0 {
			t.Fatalf("a reader saw %d events of appends of %d", seen, size)
		}
		check(t, ctx.Err())
	}
	last, err := s.Append(ctx, "max", 0, facts(eventlog.MaxAppend)...)
	check(t, err)
	if last.Version != eventlog.MaxAppend || len(stream(t, s, "max", 0)) != eventlog.MaxAppend {
		t.Fatalf("the longest append gave %+v", last)
	}
}

func limits(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	big := facts(1)
	big[0].Data = []byte(`"` + strings.Repeat("x", eventlog.MaxEventBytes-2) + `"`)
	name := eventlog.Stream(strings.Repeat("s", eventlog.MaxStreamBytes))
	_, err := s.Append(ctx, name, 0, big...)
	check(t, err)
	if got := stream(t, s, name, 0); len(got) != 1 || !bytes.Equal(got[0].Data, big[0].Data) {
		t.Fatal("the largest event did not come back whole")
	}

	tooBig := facts(2)
	tooBig[1].Data = append(bytes.Clone(big[0].Data), ' ')
	for what, appends := range map[string]func() error{
		"data":   func() error { _, err := s.Append(ctx, "one", 0, tooBig...); return err },
		"events": func() error { _, err := s.Append(ctx, "one", 0, facts(eventlog.MaxAppend+1)...); return err },
		"name":   func() error { _, err := s.Append(ctx, name+"s", 0, facts(1)...); return err },
	} {
		if err := appends(); !errors.Is(err, eventlog.ErrTooLarge) || errors.Is(err, eventlog.ErrUnknown) {
			t.Errorf("%s over the limit: %v", what, err)
		}
	}
	if _, err := s.Append(ctx, "one", 0); err == nil {
		t.Error("an append of nothing was taken")
	}
	if _, err := s.Append(ctx, "", 0, facts(1)...); err == nil {
		t.Error("an append to a stream without a name was taken")
	}
	if all, _ := everything(t, s, eventlog.Filter{}, 10); len(all) != 1 {
		t.Errorf("%d events stand, not 1", len(all))
	}
}

func roundTrip(t *testing.T, o Opened[Log]) {
	ctx, s, clock := soon(t), o.Port, o.Clock.orReal()
	name := eventlog.Stream(`tx-1-Ω "quoted" 'single' \ %_ ;--`)
	events := []eventlog.Event{
		{
			ID: freshID(), Name: "test.full.v1",
			Data: []byte("{ \"b\": 1.50,\n\t\"a\": \"\\u0000 é 雪\", \"b\": 2 }"), // kept byte for byte, not as JSON
			Meta: eventlog.Meta{Correlation: freshID(), Causation: freshID(), Actor: `a"b\c é`, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Link: eventlog.Link{31: 1}},
		},
		{ID: freshID(), Name: "test.bare.v1", Data: []byte("null")},
	}
	before := clock.Now()
	appended, err := s.Append(ctx, name, 0, events...)
	check(t, err)
	after := clock.Now()

	got := stream(t, s, name, 0)
	if len(got) != 2 {
		t.Fatalf("%d events came back", len(got))
	}
	for i, r := range got {
		want := eventlog.Recorded{Event: events[i], Stream: name, Version: eventlog.Version(i + 1), Position: r.Position, At: r.At}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Error(diff)
		}
		// A microsecond of tolerance: the store truncates its clock to microseconds.
		if r.At.Before(before.Add(-clockSlack)) || r.At.After(after.Add(clockSlack)) {
			t.Errorf("recorded at %s, appended from %s to %s", r.At, before, after)
		}
		if !r.At.Equal(r.At.Truncate(time.Microsecond)) {
			t.Errorf("recorded at %s, finer than a microsecond", r.At)
		}
	}
	if got[0].Position >= got[1].Position || got[1].Position != appended.Position {
		t.Errorf("positions %d and %d, told %d", got[0].Position, got[1].Position, appended.Position)
	}
	all, _ := everything(t, s, eventlog.Filter{}, 10)
	if diff := cmp.Diff(got, all); diff != "" {
		t.Error("ReadAll differs from ReadStream:", diff)
	}
}

// clockSlack is how far a database server's clock may be from the test's.
const clockSlack = 100 * time.Millisecond

func race(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	const writers, target = 8, 200
	var mu sync.Mutex
	won := map[eventlog.Version]eventlog.ID{}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for at := eventlog.Version(0); at < target; {
				e := facts(1)
				a, err := s.Append(ctx, "one", at, e...)
				var conflict *eventlog.ConflictError
				switch {
				case err == nil:
					mu.Lock()
					if a.Version != at+1 || !won[a.Version].IsZero() {
						t.Errorf("version %d was won twice, or by an append at %d", a.Version, at)
					}
					won[a.Version] = e[0].ID
					mu.Unlock()
					at = a.Version
				case errors.As(err, &conflict) && conflict.Actual > at:
					at = conflict.Actual
				default:
					t.Errorf("append at %d: %v", at, err)
					return
				}
			}
		})
	}
	all.Wait()
	got := stream(t, s, "one", 0)
	if len(got) != len(won) || len(got) < target {
		t.Fatalf("%d events stand, %d appends won", len(got), len(won))
	}
	for i, r := range got {
		if r.Version != eventlog.Version(i+1) || r.ID != won[r.Version] {
			t.Fatalf("version %d at place %d is not the event that won it", r.Version, i)
		}
	}
}

func neighbours(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	_, err := s.Append(ctx, "taken", 0, facts(1)...)
	check(t, err)
	const each = 300
	var all sync.WaitGroup
	for i := range each {
		all.Go(func() {
			if _, err := s.Append(ctx, eventlog.Stream(fmt.Sprint("own-", i)), 0, facts(1+i%3)...); err != nil {
				t.Error("a neighbour failed:", err)
			}
		})
		if i%10 != 0 {
			continue
		}
		all.Go(func() {
			_, err := s.Append(ctx, "taken", 0, facts(2)...)
			var conflict *eventlog.ConflictError
			if !errors.As(err, &conflict) || conflict.Actual != 1 {
				t.Error("the stale append answered", err)
			}
		})
		all.Go(func() {
			if _, err := s.Append(ctx, "large", 0, facts(eventlog.MaxAppend+1)...); !errors.Is(err, eventlog.ErrTooLarge) {
				t.Error("the large append answered", err)
			}
		})
	}
	all.Wait()
	got, _ := everything(t, s, eventlog.Filter{}, 1000)
	if len(got) != 1+each*2 {
		t.Errorf("%d events stand, not %d", len(got), 1+each*2)
	}
	inOrder(t, got)
}

// runOnOneStream sends appends at versions 0, 1, 2, … concurrently. Appends of one database
// transaction are chained there. An append that comes too early conflicts and is retried.
func runOnOneStream(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	const n = 60
	var all sync.WaitGroup
	for i := range n {
		e := facts(1)
		all.Go(func() {
			for {
				a, err := s.Append(ctx, "one", eventlog.Version(i), e...)
				var conflict *eventlog.ConflictError
				switch {
				case err == nil && a.Version == eventlog.Version(i+1) && !a.Repeated:
					return
				case errors.As(err, &conflict) && conflict.Actual < eventlog.Version(i):
				default:
					t.Errorf("append at %d: %+v, %v", i, a, err)
					return
				}
			}
		})
	}
	all.Wait()
	if got := stream(t, s, "one", 0); len(got) != n {
		t.Fatalf("%d events stand, not %d", len(got), n)
	}
}

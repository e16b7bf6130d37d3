package storetest

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// stream reads a stream and checks that versions and positions rise as they must.
func stream(t *testing.T, s Log, name eventlog.Stream, after eventlog.Version) (events []eventlog.Recorded) {
	t.Helper()
	for r, err := range s.ReadStream(soon(t), name, after) {
		if err != nil {
			t.Fatal("read stream:", err)
		}
		if r.Stream != name || r.Version != after+eventlog.Version(len(events))+1 {
			t.Fatalf("place %d after version %d of %s is %s version %d", len(events), after, name, r.Stream, r.Version)
		}
		if n := len(events); n > 0 && r.Position <= events[n-1].Position {
			t.Fatalf("%s version %d stands at position %d, below its predecessor", name, r.Version, r.Position)
		}
		events = append(events, r)
	}
	return events
}

// everything reads all events and checks the shape of the batches.
func everything(t *testing.T, s Log, f eventlog.Filter, max int) (events []eventlog.Recorded, next eventlog.Position) {
	t.Helper()
	return from(t, s, 0, f, max)
}

func from(t *testing.T, s Log, after eventlog.Position, f eventlog.Filter, max int) (events []eventlog.Recorded, next eventlog.Position) {
	t.Helper()
	next = after
	live := false
	for b, err := range s.ReadAll(soon(t), after, f, max) {
		if err != nil {
			t.Fatal("read all:", err)
		}
		if live {
			t.Fatalf("a batch came after the live one: %+v", b)
		}
		live = b.Live
		checkBatch(t, b, next, f, max)
		next = b.Next
		events = append(events, b.Events...)
	}
	if !live {
		t.Fatal("the last batch was not live")
	}
	return events, next
}

// checkBatch checks one batch that follows a position.
func checkBatch(t *testing.T, b eventlog.Batch, after eventlog.Position, f eventlog.Filter, max int) {
	t.Helper()
	if len(b.Events) > max {
		t.Fatalf("a batch of %d events, asked for %d", len(b.Events), max)
	}
	last := after
	for _, r := range b.Events {
		if r.Position <= last || r.Position > b.Next {
			t.Fatalf("position %d in a batch from %d to %d, after %d", r.Position, after, b.Next, last)
		}
		if !f.Passes(r.Stream, r.Name) {
			t.Fatalf("%s in %s does not pass %+v", r.Name, r.Stream, f)
		}
		last = r.Position
	}
	if b.Next < after {
		t.Fatalf("a batch went back from %d to %d", after, b.Next)
	}
}

// inOrder checks that each stream's versions rise by one.
func inOrder(t *testing.T, events []eventlog.Recorded) {
	t.Helper()
	at := map[eventlog.Stream]eventlog.Version{}
	for _, r := range events {
		if r.Version != at[r.Stream]+1 {
			t.Fatalf("%s goes from version %d to %d at position %d", r.Stream, at[r.Stream], r.Version, r.Position)
		}
		at[r.Stream] = r.Version
	}
}

func readStream(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	const n = 2500 // more than a store may read at once
	for at := 0; at < n; at += eventlog.MaxAppend {
		_, err := s.Append(ctx, "one", eventlog.Version(at), facts(eventlog.MaxAppend)...)
		check(t, err)
		_, err = s.Append(ctx, "on", eventlog.Version(at/eventlog.MaxAppend), facts(1)...)
		check(t, err)
	}
	for after, want := range map[eventlog.Version]int{0: n, 1: n - 1, 1249: 1251, n - 1: 1, n: 0, n + 7: 0} {
		if got := len(stream(t, s, "one", after)); got != want {
			t.Errorf("%d events after version %d, not %d", got, after, want)
		}
	}
	// Version also counts events that an archive holds.
	if at, err := s.Version(ctx, "one"); err != nil || at != n {
		t.Errorf("the stream is at version %d (%v), not %d", at, err, n)
	}
	if got := stream(t, s, "none", 0); len(got) != 0 {
		t.Error("a stream that does not exist has", got)
	}
	seen := 0
	for _, err := range s.ReadStream(ctx, "one", 0) { // leaving early is no error
		check(t, err)
		if seen++; seen == 3 {
			break
		}
	}
	_, err := s.Append(ctx, "one", n, facts(1)...)
	check(t, err)
}

// versionOf checks a stream's version after each append, and after the store was opened again.
func versionOf(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	expect := func(name eventlog.Stream, want eventlog.Version) {
		t.Helper()
		got, err := s.Version(ctx, name)
		check(t, err)
		if got != want {
			t.Errorf("%s is at version %d, not %d", name, got, want)
		}
	}
	expect("one", 0)
	for at := eventlog.Version(0); at < 12; at += 3 {
		_, err := s.Append(ctx, "one", at, facts(3)...)
		check(t, err)
		expect("one", at+3)
		_, err = s.Append(ctx, "on", at/3, facts(1)...)
		check(t, err)
	}
	expect("on", 4)
	expect("o", 0)
	if o.Reopen != nil {
		s = o.Reopen()
		expect("one", 12)
	}
}

func readAllPages(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	if events, next := everything(t, s, eventlog.Filter{}, 10); len(events) != 0 || next != 0 {
		t.Fatalf("an empty log has %v and ends at %d", events, next)
	}
	const streams, each = 20, 6
	for v := range each / 2 {
		for i := range streams {
			_, err := s.Append(ctx, eventlog.Stream(fmt.Sprint("s-", i)), eventlog.Version(2*v), facts(2)...)
			check(t, err)
		}
	}
	all, end := everything(t, s, eventlog.Filter{}, 1000)
	if len(all) != streams*each {
		t.Fatalf("%d events, not %d", len(all), streams*each)
	}
	inOrder(t, all)
	for _, max := range []int{1, 2, 7, streams * each, 1 << 20} {
		got, next := everything(t, s, eventlog.Filter{}, max)
		if diff := differ(all, got); diff != "" || next != end {
			t.Fatalf("in pages of %d, ending at %d not %d: %s", max, next, end, diff)
		}
	}
	for _, i := range []int{0, 1, 50, len(all) - 1} {
		got, _ := from(t, s, all[i].Position, eventlog.Filter{}, 9)
		if diff := differ(all[i+1:], got); diff != "" {
			t.Fatalf("after position %d: %s", all[i].Position, diff)
		}
	}
	for _, err := range s.ReadAll(ctx, 0, eventlog.Filter{}, 1) { // leaving early is no error
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if _, next := from(t, s, end, eventlog.Filter{}, 1); next != end {
		t.Fatalf("reading at the end moved from %d to %d", end, next)
	}
}

// differ is cmp.Diff for long lists of events. Deeply equal lists have no difference, and
// checking that is much faster. nil equals an empty list.
func differ(want, got []eventlog.Recorded) string {
	if len(want)+len(got) == 0 || reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

func readAllFiltered(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	const rounds = 300
	for i := range rounds {
		_, err := s.Append(ctx, eventlog.Stream(fmt.Sprint("tx-1-", i)), 0, append(named("tx.accepted.v1", 1), named("tx.mined.v2", 1)...)...)
		check(t, err)
		if i%100 == 50 {
			_, err = s.Append(ctx, eventlog.Stream(fmt.Sprint("lane-", i)), 0, named("lane.opened.v1", 1)...)
			check(t, err)
		}
	}
	all, end := everything(t, s, eventlog.Filter{}, 100)
	for name, f := range map[string]eventlog.Filter{
		"one stream prefix":        {Streams: []string{"lane-"}},
		"two stream prefixes":      {Streams: []string{"lane-1", "tx-1-29"}},
		"a whole stream name":      {Streams: []string{"lane-50"}},
		"one name prefix":          {Names: []string{"tx.mined."}},
		"two name prefixes":        {Names: []string{"lane.", "tx.accepted."}},
		"nothing passes":           {Streams: []string{"group-"}},
		"everything, by no prefix": {Streams: []string{""}},
		"prefix of another case":   {Streams: []string{"TX-"}},
		"name of another case":     {Names: []string{"TX."}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []eventlog.Recorded
			for _, r := range all {
				if f.Passes(r.Stream, r.Name) {
					want = append(want, r)
				}
			}
			for _, max := range []int{1, 3, 1000} {
				got, next := everything(t, s, f, max)
				if diff := differ(want, got); diff != "" {
					t.Fatal(diff)
				}
				// A caller that waits for a checkpoint to reach the head must not wait for
				// ever.
				if next != end {
					t.Fatalf("the read ended at %d, the head is %d", next, end)
				}
			}
		})
	}
}

func literalPrefixes(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	names := []eventlog.Stream{`a_b`, `axb`, `a%b`, `a*b`, `a?b`, `a[x]b`, `axx`, `a\b`, `a\\b`, `é1`, `e1`, `ÿ`, "a\U0010ffffb"}
	for _, n := range names {
		_, err := s.Append(ctx, n, 0, named(string(n)+".v1", 1)...)
		check(t, err)
	}
	for _, p := range []string{`a_`, `a%`, `a*`, `a?`, `a[`, `a\`, `a\\`, `é`, `e`, `ÿ`, "a\U0010ffff", `a`} {
		byStream, _ := everything(t, s, eventlog.Filter{Streams: []string{p}}, 100)
		byName, _ := everything(t, s, eventlog.Filter{Names: []string{p}}, 100)
		want := 0
		for _, n := range names {
			if (eventlog.Filter{Streams: []string{p}}).Passes(n, "") {
				want++
			}
		}
		if len(byStream) != want || len(byName) != want {
			t.Errorf("prefix %q passes %d streams and %d names, not %d", p, len(byStream), len(byName), want)
		}
	}
}

func head(t *testing.T, o Opened[Log]) {
	ctx, s := soon(t), o.Port
	at, err := s.Head(ctx)
	check(t, err)
	if at != 0 {
		t.Fatalf("an empty log has its head at %d", at)
	}
	for i := range 3 {
		a, err := s.Append(ctx, eventlog.Stream(fmt.Sprint("s-", i)), 0, facts(2)...)
		check(t, err)
		if at, err = s.Head(ctx); err != nil || at != a.Position {
			t.Fatalf("head is %d (%v) right after an append at %d", at, err, a.Position)
		}
	}
	if _, next := everything(t, s, eventlog.Filter{}, 2); next != at {
		t.Fatalf("a read to the end stops at %d, the head is %d", next, at)
	}
}

// beyondHead reads after a position beyond the log's head. The reader has it from another log:
// if reads returned no events, events appended up to there would be skipped.
func beyondHead(t *testing.T, o Opened[Log]) {
	s := o.Port
	a, err := s.Append(soon(t), "one", 0, facts(2)...)
	check(t, err)
	for _, f := range []eventlog.Filter{{}, {Streams: []string{"o"}}, {Names: []string{"test."}}} {
		var refused error
		for _, err := range s.ReadAll(soon(t), a.Position+1, f, 10) {
			refused = err
		}
		if refused == nil {
			t.Errorf("%v: a read beyond the head came to a good end", f)
		}
	}
}

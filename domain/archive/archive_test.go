package archive

import (
	"encoding/json"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/eventtest"
)

var update = flag.Bool("update", false, "write samples of events that have none yet")

func segment(first, past eventlog.Position) Segment {
	at := time.Date(2026, 11, 21, 3, 4, 5, 678901000, time.UTC)
	return Segment{
		Store: eventlog.ID{1}, First: first, Past: past, Name: Name(first, past), Hash: Digest{2, byte(first)},
		Events: uint64(past - first), Bytes: 4711, From: at, To: at.Add(time.Hour),
	}
}

// Current events encode to their frozen samples, and every name ever written still decodes.
func TestFrozenSamples(t *testing.T) {
	at := time.Date(2026, 11, 21, 4, 4, 5, 678901000, time.UTC)
	eventtest.Frozen(t, Codec(), []Event{Stored{segment(1, 1001), at}, Dropped{1001, at}, Restored{501, at}}, *update)
}

func run(t interface{ Fatalf(string, ...any) }, s State, commands ...Command) State {
	for _, c := range commands {
		events, err := s.Decide(c)
		if err != nil {
			t.Fatalf("%T: %v", c, err)
		}
		for _, e := range events {
			s = s.Evolve(e)
		}
	}
	return s
}

func TestRefusals(t *testing.T) {
	one := run(t, State{}, Store{Segment: segment(1, 11)})
	foreign := segment(11, 21)
	foreign.Store = eventlog.ID{9}
	for name, c := range map[string]struct {
		give Command
		want eventlog.Refusal
	}{
		"a gap":             {Store{Segment: segment(12, 21)}, ErrGap},
		"an overlap":        {Store{Segment: segment(5, 21)}, ErrGap},
		"nothing in it":     {Store{Segment: segment(11, 11)}, ErrGap},
		"another store's":   {Store{Segment: foreign}, ErrForeign},
		"what is not there": {Drop{Below: 12}, ErrNotKept},
	} {
		if _, err := one.Decide(c.give); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// For every sequence of commands, segments have no gap, nothing outside segments is dropped, and
// a repeated command adds nothing.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		for range rapid.IntRange(1, 30).Draw(t, "commands") {
			at := eventlog.Position(rapid.IntRange(1, 60).Draw(t, "at"))
			c := []Command{Store{Segment: segment(s.Past(), s.Past()+at)}, Store{Segment: segment(at, at+10)}, Drop{Below: at}, Restore{From: at}}[rapid.IntRange(0, 3).Draw(t, "what")]
			events, err := s.Decide(c)
			if err != nil {
				continue
			}
			for _, e := range events {
				s = s.Evolve(e)
			}
			if again, err := s.Decide(c); err != nil || len(again) > 0 {
				t.Fatalf("%+v again: %v, %v", c, again, err)
			}
			next := eventlog.Position(1)
			for _, g := range s.Segments {
				if g.First != next {
					t.Fatalf("a gap before %+v", g)
				}
				next = g.Past
			}
			if s.Begins > s.Past() {
				t.Fatalf("the log begins at %d, segments end at %d", s.Begins, s.Past())
			}
		}
	})
}

func TestDigestText(t *testing.T) {
	want := Digest{1, 31: 255}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Digest
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("%s: %v", text, err)
	}
	for _, bad := range []string{`""`, `"00"`, `"` + want.String() + `00"`, `"x` + want.String()[1:] + `"`} {
		if json.Unmarshal([]byte(bad), &got) == nil {
			t.Errorf("%s is taken for a SHA-256", bad)
		}
	}
}

func TestRule(t *testing.T) {
	r := Rule{{Prefix: "tx-", Names: []string{"tx.finalized."}}, {Prefix: "group-"}}
	got := map[string]bool{}
	for _, c := range [][2]string{{"tx-1", "tx.finalized.v1"}, {"tx-1", "tx.mined.v1"}, {"group-1", "group.joined.v1"}, {"archive", "x"}} {
		got[c[0]+" "+c[1]] = r.Settled(eventlog.Stream(c[0]), c[1])
	}
	want := map[string]bool{"tx-1 tx.finalized.v1": true, "tx-1 tx.mined.v1": false, "group-1 group.joined.v1": true, "archive x": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

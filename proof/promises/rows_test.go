package promises_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/proof/promises"
)

func table(rows map[string]string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, k := range slices.Sorted(maps.Keys(rows)) {
			if !yield(k, []byte(rows[k])) {
				return
			}
		}
	}
}

func TestCompare(t *testing.T) {
	want := map[string]string{"a": "1", "b": "2", "c": "3"}
	for _, c := range []struct {
		name string
		got  map[string]string
		want promises.Drift
	}{
		{"same", want, promises.Drift{Rows: 3}},
		{"missing", map[string]string{"a": "1", "c": "3"}, promises.Drift{Rows: 3, Missing: 1, First: []promises.Difference{{Key: "b", Want: []byte("2")}}}},
		{"extra", map[string]string{"a": "1", "aa": "9", "b": "2", "c": "3", "d": "4"}, promises.Drift{Rows: 3, Extra: 2, First: []promises.Difference{
			{Key: "aa", Got: []byte("9")}, {Key: "d", Got: []byte("4")},
		}}},
		{"different", map[string]string{"a": "1", "b": "9", "c": "3"}, promises.Drift{Rows: 3, Different: 1, First: []promises.Difference{{Key: "b", Want: []byte("2"), Got: []byte("9")}}}},
		{"none", nil, promises.Drift{Rows: 3, Missing: 3, First: []promises.Difference{
			{Key: "a", Want: []byte("1")}, {Key: "b", Want: []byte("2")}, {Key: "c", Want: []byte("3")},
		}}},
	} {
		got := promises.Compare(table(want), table(c.got))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// For any two tables, the counts are the sizes of the set differences.
func TestCompareCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) map[string]string {
			return rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), rapid.SampledFrom([]string{"1", "2"})).Draw(t, name)
		}
		want, got := draw("want"), draw("got")
		d := promises.Compare(table(want), table(got))
		var missing, extra, different uint64
		for k, v := range want {
			other, ok := got[k]
			switch {
			case !ok:
				missing++
			case other != v:
				different++
			}
		}
		for k := range got {
			if _, ok := want[k]; !ok {
				extra++
			}
		}
		if d.Missing != missing || d.Extra != extra || d.Different != different || d.Total() != uint64(len(d.First)) {
			t.Fatalf("%+v", d)
		}
	})
}

func TestReader(t *testing.T) {
	at := func(p eventlog.Position, stream eventlog.Stream) eventlog.Recorded {
		return eventlog.Recorded{Stream: stream, Position: p, Event: eventlog.Event{Name: "tx.accepted.v1"}}
	}
	log := []eventlog.Recorded{at(1, "tx-1"), at(2, "group-1"), at(3, "tx-2"), at(5, "tx-1")}
	for _, c := range []struct {
		name   string
		shown  []int // indexes into log
		breaks int
	}{
		{"each once", []int{0, 2, 3}, 0},
		{"one skipped", []int{0, 3}, 1},
		{"the last skipped", []int{0, 2}, 1},
		{"one twice", []int{0, 0, 2, 3}, 1},
		{"not in order", []int{2, 0, 3}, 2}, // skipped, and then shown
		{"one that is not for it", []int{0, 1, 2, 3}, 1},
	} {
		r := promises.Reader{Name: "r", Filter: eventlog.Filter{Streams: []string{"tx-"}}}
		for _, e := range log {
			r.Event(e)
		}
		var found []promises.Violation
		for _, i := range c.shown {
			found = append(found, r.Shown(log[i])...)
		}
		if found = append(found, r.Finish()...); len(found) != c.breaks {
			t.Errorf("%s: %v", c.name, found)
		}
		for _, v := range found {
			if v.Promise != promises.P20 || v.Position == 0 {
				t.Errorf("%s: %s", c.name, v)
			}
		}
	}
}

func TestDiffer(t *testing.T) {
	one := newScript(promises.Settings{})
	executed(one, alpha)
	same := newScript(promises.Settings{})
	same.later(time.Hour)
	executed(same, alpha)
	if found := promises.Differ(promises.P21, one.judge.Outcomes(), same.judge.Outcomes()); len(found) != 0 {
		t.Error(found)
	}
	for name, other := range map[string]func(s *script){
		"canceled": func(s *script) { s.accept(alpha); s.log(alpha, tx.CanceledLocally{}) },
		"open":     func(s *script) { s.accept(alpha) },
		"not there": func(*script) {
		},
	} {
		s := newScript(promises.Settings{})
		other(s)
		for _, n := range []promises.Number{promises.P21, promises.P26} {
			if found := promises.Differ(n, one.judge.Outcomes(), s.judge.Outcomes()); len(found) != 1 || found[0].Promise != n {
				t.Errorf("%s: %v", name, found)
			}
		}
	}
}

func TestCanaries(t *testing.T) {
	secret := []byte("a secret of twenty-four!")
	c := promises.NewCanaries(map[string][]byte{"key": secret})
	for name, text := range map[string]string{
		"as it is": "x" + string(secret), "hex": "0x" + hex.EncodeToString(secret), "upper hex": fmt.Sprintf("%X.", secret),
		"base64": base64.StdEncoding.EncodeToString(secret), "base64 after one": base64.StdEncoding.EncodeToString(append([]byte("1"), secret...)),
		"base64 after two": base64.StdEncoding.EncodeToString(append([]byte("12"), secret...)),
	} {
		for _, step := range []int{1, 7, len(text)} {
			w := c.Watch("the log")
			for piece := range slices.Chunk([]byte(text), step) {
				if _, err := w.Write(piece); err != nil {
					t.Fatal(err)
				}
			}
			if found := w.Found(); len(found) != 1 || found[0].Promise != promises.P28 {
				t.Errorf("%s in pieces of %d: %v", name, step, found)
			}
		}
	}
	w := c.Watch("the log")
	if _, err := w.Write([]byte("a secret of twenty-three, and 0x00")); err != nil || len(w.Found()) != 0 {
		t.Errorf("%v, %v", w.Found(), err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a secret of three bytes was taken")
		}
	}()
	promises.NewCanaries(map[string][]byte{"short": []byte("abc")})
}

func TestSpread(t *testing.T) {
	var s promises.Spread
	if s.Quantile(0.5) != 0 {
		t.Error("an empty spread has a median")
	}
	for i := range 1000 {
		s.Add(time.Duration(i+1) * time.Millisecond)
	}
	for share, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second} {
		if got := s.Quantile(share); got < want || float64(got) > 1.1*float64(want) {
			t.Errorf("quantile %v is %s, want %s", share, got, want)
		}
	}
	s.Add(-time.Hour)
	if s.Max != time.Second || s.Quantile(0) != 0 {
		t.Errorf("after one below zero: max %s, least %s", s.Max, s.Quantile(0))
	}
}

func TestLedger(t *testing.T) {
	l := promises.NewLedger()
	one, two, fork := blockOf(1, "main"), blockOf(2, "main"), blockOf(2, "fork")
	in := promises.Execution{Hash: alpha.hash(), Status: 1, Sequence: alpha.sequence()}
	l.Add(one)
	l.Add(two, in)
	l.Finalize(1)
	if r, ok := l.Receipt(alpha.hash()); !ok || r.Block != two || l.Final(two) || !l.Final(one) || l.Left(two.Hash) {
		t.Errorf("%+v, %t", r, ok)
	}
	if n, ok := l.Next(alpha.sequence()); !ok || n != 1 {
		t.Errorf("wants %d", n)
	}
	l.Add(fork)
	if _, ok := l.Receipt(alpha.hash()); ok || !l.Left(two.Hash) || l.Head() != fork {
		t.Error("a block that was replaced is still there")
	}
	if n, ok := l.Next(alpha.sequence()); !ok || n != 0 {
		t.Errorf("wants %d after the fork", n)
	}
	l.Finalize(2)
	l.Rewind(0)
	if _, ok := l.At(2); ok || !l.Final(fork) || l.Final(two) {
		t.Error("what was final once is not known as such")
	}
	for range l.Executed() {
		t.Error("an empty chain has executed something")
	}
	if l.Head() != (chain.Block{}) {
		t.Error("an empty chain has a head")
	}
}

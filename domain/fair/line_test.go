package fair_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/fair"
)

// round takes all items of a round.
func round(l *fair.Line[string]) (items []string) {
	if !l.Begin() {
		return nil
	}
	for item, ok := l.Next(); ok; item, ok = l.Next() {
		items = append(items, item)
	}
	return items
}

func TestLine(t *testing.T) {
	l := fair.NewLine[string](10)
	for _, item := range []string{"a0", "a1", "a2", "a3"} {
		l.Add("a", item, 4)
	}
	l.Add("b", "b0", 25)
	l.Add("b", "b1", 1)
	l.Add("c", "c0", 1)
	l.Remove("a", "a1")
	l.Remove("c", "c0")
	l.Remove("c", "c0") // it is gone
	l.Remove("d", "d0")
	if n := l.Len(); n != 5 {
		t.Errorf("%d items wait", n)
	}
	l.Close()
	if l.Add("a", "late", 1) {
		t.Error("a closed line accepts an item")
	}
	for i, want := range [][]string{{"a0", "b0", "a2"}, {"b1", "a3"}, nil} {
		if got := round(l); !slices.Equal(got, want) {
			t.Errorf("round %d: %v, want %v", i, got, want)
		}
	}
}

// A client whose turn did not come in a round is first in the next one.
func TestLineTurnsGoOn(t *testing.T) {
	l := fair.NewLine[string](1)
	for _, client := range []string{"a", "b", "c"} {
		l.Add(client, client, 1)
		l.Add(client, client, 1)
	}
	l.Begin()
	l.Next()
	l.Begin()
	if next, _ := l.Next(); next != "b" {
		t.Errorf("the second turn is %s's", next)
	}
}

// Begin waits for an item.
func TestLineWaits(t *testing.T) {
	l := fair.NewLine[string](1)
	got := make(chan []string)
	go func() { got <- round(l) }()
	l.Add("a", "a0", 1)
	if items := <-got; !slices.Equal(items, []string{"a0"}) {
		t.Error(items)
	}
	go func() { got <- round(l) }()
	l.Close()
	if items := <-got; items != nil {
		t.Error(items)
	}
}

// For any items, each is given out once, a client's in their order, and no round has more of a
// client than its share or one item. A client that has items gets at least one in each round.
func TestLineIsFair(t *testing.T) {
	type item struct {
		client    string
		n, weight int
	}
	rapid.Check(t, func(r *rapid.T) {
		const share = 10
		l := fair.NewLine[item](share)
		left := map[string]int{} // items of each client
		weights := rapid.SliceOfN(rapid.IntRange(1, 25), 1, 50).Draw(r, "weights")
		for _, w := range weights {
			c := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "client")
			l.Add(c, item{c, left[c], w}, w)
			left[c]++
		}
		l.Close()
		next := map[string]int{}
		for l.Begin() {
			given, count := map[string]int{}, map[string]int{}
			for i, ok := l.Next(); ok; i, ok = l.Next() {
				if i.n != next[i.client] {
					r.Fatalf("%v after %d of the client's items", i, next[i.client])
				}
				next[i.client]++
				given[i.client] += i.weight
				count[i.client]++
			}
			for c, n := range left {
				if given[c] > share && count[c] > 1 {
					r.Fatalf("%s got %d in a round", c, given[c])
				}
				if count[c] == 0 && next[c] < n {
					r.Fatalf("%s got nothing in a round", c)
				}
			}
		}
		for c, n := range left {
			if next[c] != n {
				r.Fatalf("%s got %d of %d items", c, next[c], n)
			}
		}
	})
}

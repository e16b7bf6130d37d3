package fair_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tempo-watchtower/watchtower/domain/fair"
)

func TestDeal(t *testing.T) {
	of := func(counts map[string]int) map[string][]string {
		items := map[string][]string{}
		for client, n := range counts {
			for i := range n {
				items[client] = append(items[client], fmt.Sprint(client, i))
			}
		}
		return items
	}
	for _, c := range []struct {
		name  string
		turn  string
		limit int
		items map[string]int
		want  string
	}{
		{"nothing", "", 3, nil, ""},
		{"one client has it all", "", 3, map[string]int{"b": 5}, "b0 b1 b2"},
		{"a crowd keeps nobody waiting", "", 4, map[string]int{"a": 2, "b": 50_000}, "a0 b0 a1 b1"},
		{"behind the last one", "a", 3, map[string]int{"a": 2, "b": 2, "c": 1}, "b0 c0 a0"},
		{"behind all", "c", 2, map[string]int{"a": 2, "b": 2}, "a0 b0"},
		{"what one leaves others get", "b", 5, map[string]int{"a": 9, "b": 1, "c": 1}, "c0 a0 b0 a1 a2"},
		{"no limit", "", 0, map[string]int{"a": 2}, ""},
	} {
		if got := strings.Join(fair.Deal(c.turn, c.limit, of(c.items)), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// For any backlogs and round sizes, a client with items gets as many as every other client, give
// or take one.
func TestNobodyWaitsForACrowd(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		clients := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-e]{1,2}`), 1, 6, rapid.ID[string]).Draw(r, "clients")
		left := map[string][]string{}
		for _, c := range clients {
			left[c] = slices.Repeat([]string{c}, 1000)
		}
		got, turn := map[string]int{}, ""
		for range 40 {
			dealt := fair.Deal(turn, rapid.IntRange(1, 9).Draw(r, "limit"), left)
			for _, c := range dealt {
				got[c]++
				left[c] = left[c][1:]
			}
			turn = dealt[len(dealt)-1]
			for _, c := range clients {
				for _, other := range clients {
					if got[c]-got[other] > 1 {
						r.Fatalf("%s has had %d, %s %d", c, got[c], other, got[other])
					}
				}
			}
		}
	})
}

// A client that was served while it was alone waits for a client that comes now.
func TestQueueOfOneThenTwo(t *testing.T) {
	var q fair.Queue[string]
	q.Add("a", "a0")
	q.Add("a", "a1")
	first, _ := q.Next()
	q.Add("b", "b0")
	second, _ := q.Next()
	third, _ := q.Next()
	if got := first + second + third; got != "a0b0a1" {
		t.Error(got)
	}
}

func TestQueue(t *testing.T) {
	var q fair.Queue[string]
	for _, item := range []string{"b0", "b1", "b2", "a0", "c0", "a1"} {
		q.Add(item[:1], item)
	}
	q.Keep(func(item string) bool { return item != "c0" && item != "b1" })
	var got []string
	for !q.Empty() {
		item, ok := q.Next()
		if got = append(got, item); !ok || len(got) == 2 {
			q.Add("d", "d0") // it comes last
		}
	}
	if text := strings.Join(got, " "); text != "b0 a0 b2 a1 d0" {
		t.Error(text)
	}
	if item, ok := q.Next(); ok {
		t.Errorf("an empty queue has %q", item)
	}
}

package tx_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// backlog maps a client to its due rows: first attempts and retries.
type backlog map[string]*[2]int

// lease serves the clients once and returns how many rows each got.
func (b backlog) lease(t *testing.T, turns *tx.Turns, limit, repeats int) map[string]int {
	t.Helper()
	got := map[string]int{}
	var ready []tx.Ready
	for client, due := range b {
		if due[0]+due[1] > 0 {
			ready = append(ready, tx.Ready{Client: client, Repeats: due[1] > 0})
		}
	}
	total, again := 0, 0
	err := turns.Serve(limit, repeats, ready, func(shares []tx.Share) (taken []tx.Share, err error) {
		for _, s := range shares {
			due := b[s.Client]
			r := min(s.Repeats, due[1])
			f := min(s.Rows-r, due[0])
			due[0], due[1] = due[0]-f, due[1]-r
			got[s.Client] += f + r
			total, again = total+f+r, again+r
			taken = append(taken, tx.Share{Client: s.Client, Rows: f + r, Repeats: r})
		}
		return taken, nil
	})
	if err != nil || total > limit || again > repeats {
		t.Fatalf("%d rows of %d, %d repeats of %d: %v", total, limit, again, repeats, err)
	}
	maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
	return got
}

func TestTurns(t *testing.T) {
	for _, c := range []struct {
		name           string
		due            backlog
		limit, repeats int
		want           map[string]int
	}{
		{"one client", backlog{"a": {100, 0}}, 8, 8, map[string]int{"a": 8}},
		{"two alike", backlog{"a": {100, 0}, "b": {100, 0}}, 8, 8, map[string]int{"a": 4, "b": 4}},
		{"one has little", backlog{"a": {1, 0}, "b": {100, 0}}, 8, 8, map[string]int{"a": 1, "b": 7}},
		{"firsts beside repeats", backlog{"a": {1, 0}, "b": {0, 100}}, 8, 4, map[string]int{"a": 1, "b": 4}},
		{"repeats beside repeats", backlog{"a": {0, 100}, "b": {0, 100}}, 8, 4, map[string]int{"a": 2, "b": 2}},
		{"repeats of one alone", backlog{"a": {100, 0}, "b": {0, 100}}, 8, 6, map[string]int{"a": 4, "b": 4}},
		{"no repeats", backlog{"a": {3, 9}, "b": {0, 100}}, 8, 0, map[string]int{"a": 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.due.lease(t, new(tx.Turns), c.limit, c.repeats); !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Serving ends for clients with only retries, and for clients that have lost their ready rows.
func TestTurnsEnd(t *testing.T) {
	for limit := range 5 {
		for repeats := range 5 {
			for a := range 3 {
				for b := range 3 {
					left := backlog{"a": {0, a}, "b": {0, b}, "c": {1, 0}}
					turns := new(tx.Turns)
					var ready []tx.Ready
					for _, client := range []string{"a", "b", "c"} {
						ready = append(ready, tx.Ready{Client: client, Repeats: client != "c"})
					}
					rounds, got := 0, 0
					err := turns.Serve(limit, repeats, ready, func(shares []tx.Share) (taken []tx.Share, _ error) {
						if rounds++; rounds > 20 {
							t.Fatalf("limit %d, repeats %d, %d and %d due: no end", limit, repeats, a, b)
						}
						for _, s := range shares {
							r := min(s.Repeats, left[s.Client][1])
							f := min(s.Rows-r, left[s.Client][0])
							left[s.Client][0], left[s.Client][1] = left[s.Client][0]-f, left[s.Client][1]-r
							taken, got = append(taken, tx.Share{Client: s.Client, Rows: f + r, Repeats: r}), got+f+r
						}
						return taken, nil
					})
					if want := min(limit, 1+min(repeats, a+b)); err != nil || got != want {
						t.Errorf("limit %d, repeats %d, %d and %d due: got %d, want %d", limit, repeats, a, b, got, want)
					}
				}
			}
		}
	}
}

// With a single free slot the clients take turns from call to call; so do their retries.
func TestTurnsGoOn(t *testing.T) {
	for kind := range 2 {
		b := backlog{"a": {}, "b": {}, "c": {}}
		for _, due := range b {
			due[kind] = 100
		}
		turns := new(tx.Turns)
		var order []string
		for range 6 {
			order = slices.AppendSeq(order, maps.Keys(b.lease(t, turns, 1, 1)))
		}
		if want := []string{"a", "b", "c", "a", "b", "c"}; !slices.Equal(order, want) {
			t.Errorf("kind %d: %v", kind, order)
		}
	}
	// With as many slots as clients and fewer retries than clients, no client's retries starve.
	b := backlog{"a": {0, 100}, "b": {0, 100}, "c": {0, 100}, "d": {0, 100}}
	turns := new(tx.Turns)
	for range 10 {
		b.lease(t, turns, 4, 2)
	}
	for client, due := range b {
		if due[1] != 95 {
			t.Errorf("%s has %d repeats left of 100", client, due[1])
		}
	}
}

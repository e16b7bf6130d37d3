package worker

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// woken returns the indexes of the lanes that do wakes.
func woken(n *News, do func()) (places []int) {
	for _, b := range n.boxes {
		b.empty()
		select {
		case <-b.wake:
		default:
		}
	}
	do()
	for i, b := range n.boxes {
		if _, claim, _ := b.empty(); claim {
			places = append(places, i)
		}
	}
	return places
}

// A fresh intent wakes the least loaded lane that may claim it, one lane per intent. All
// lanes are woken if more is set, and a lane that has not reported its load is woken by any
// news.
func TestWake(t *testing.T) {
	const on = chain.ID(7)
	other := chain.NonceKey{31: 9}
	place := func(sender byte, key chain.NonceKey, inFlight, room int) part {
		return part{true, chain.Address{sender}, key, key == other, []string{"hot"}, signer.Share{InFlight: inFlight, Room: room}}
	}
	pool := func(n int) (all []intent.Waiting) {
		for range n {
			all = append(all, intent.Waiting{Chain: on, From: intent.From{Pool: "hot"}})
		}
		return all
	}
	one := func(change func(*intent.Waiting)) []intent.Waiting {
		w := pool(1)
		change(&w[0])
		return w
	}
	for name, c := range map[string]struct {
		parts []part
		fresh []intent.Waiting
		more  bool
		want  []int
	}{
		"the one that has less to do": {
			parts: []part{place(1, chain.NonceKey{}, 5, 10), place(2, chain.NonceKey{}, 2, 10), place(3, chain.NonceKey{}, 9, 10)},
			fresh: pool(1), want: []int{1},
		},
		"as many as it takes": {
			parts: []part{place(1, chain.NonceKey{}, 3, 10), place(2, chain.NonceKey{}, 2, 10), place(3, chain.NonceKey{}, 9, 10)},
			fresh: pool(4), want: []int{0, 1},
		},
		"none without room": {
			parts: []part{place(1, chain.NonceKey{}, 0, 0), place(2, chain.NonceKey{}, 0, 1), place(3, chain.NonceKey{}, 5, 1)},
			fresh: pool(2), want: []int{1, 2},
		},
		"its signer": {
			parts: []part{place(1, chain.NonceKey{}, 9, 10), place(2, chain.NonceKey{}, 0, 10)},
			fresh: one(func(w *intent.Waiting) { w.From = intent.From{Signer: &chain.Address{1}} }), want: []int{0},
		},
		"its key": {
			parts: []part{place(1, chain.NonceKey{}, 0, 10), place(1, other, 9, 10)},
			fresh: one(func(w *intent.Waiting) { w.Key = &other }), want: []int{1},
		},
		"not a lane that a client asked for": {
			parts: []part{place(1, chain.NonceKey{}, 9, 10), place(1, other, 0, 10)}, fresh: pool(1), want: []int{0},
		},
		"another chain's": {
			parts: []part{place(1, chain.NonceKey{}, 0, 10)}, fresh: one(func(w *intent.Waiting) { w.Chain++ }),
		},
		"another chain's row": {
			parts: []part{place(1, chain.NonceKey{}, 0, 10)},
			fresh: one(func(w *intent.Waiting) { w.Chain++; w.Row = intent.Row{Chain: w.Chain, Order: "a"} }),
		},
		"another pool's": {
			parts: []part{place(1, chain.NonceKey{}, 0, 10)}, fresh: one(func(w *intent.Waiting) { w.From.Pool = "cold" }),
		},
		"a row": {
			parts: []part{place(1, chain.NonceKey{}, 0, 10), place(2, chain.NonceKey{}, 0, 0)},
			fresh: one(func(w *intent.Waiting) { w.Row = intent.Row{Chain: on, Order: "a"} }), want: []int{0, 1},
		},
		"a row that a client's lane may not claim": {
			parts: []part{place(1, chain.NonceKey{}, 0, 10), place(1, other, 0, 10)},
			fresh: one(func(w *intent.Waiting) { w.Row = intent.Row{Chain: on, Order: "a"} }), want: []int{0},
		},
		"more": {
			parts: []part{place(1, chain.NonceKey{}, 0, 10), place(2, chain.NonceKey{}, 0, 0)}, more: true, want: []int{0, 1},
		},
		"who has said nothing yet": {
			parts: []part{place(1, chain.NonceKey{}, 0, 10), {}}, fresh: pool(1), want: []int{0, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := &News{Chain: on}
			for _, p := range c.parts {
				n.tellPart(n.open(), p)
			}
			if diff := cmp.Diff(c.want, woken(n, func() { n.Wake(c.fresh, c.more) })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Equally loaded lanes are woken in turns.
func TestWakeByTurns(t *testing.T) {
	n := &News{Chain: 7}
	for i := range 3 {
		n.tellPart(n.open(), part{told: true, sender: chain.Address{byte(i)}, pools: []string{"hot"}, Share: signer.Share{Room: 1}})
	}
	for i := range 6 {
		got := woken(n, func() { n.Wake([]intent.Waiting{{Chain: 7, From: intent.From{Pool: "hot"}}}, false) })
		if diff := cmp.Diff([]int{i % 3}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// A lane that was woken for intents and cannot take them wakes the others that have room.
// These wake no further lanes.
func TestWakesAnother(t *testing.T) {
	w, first, second := pair(t)
	pause := func(a chain.Address) {
		t.Helper()
		_, err := w.operator().Order(t.Context(), moderato, a, signer.Pause{Actor: "ada", Reason: "to look", At: w.clock.now()}, eventlog.Meta{Actor: "ada"})
		must(t, err)
	}
	pause(w.lane.Sender)
	w.ask(w.some(0, 1, nil)...)
	got := woken(first.News, func() {
		first.box.call()
		must(t, w.turns(first, 1))
	})
	if diff := cmp.Diff([]int{1}, got); diff != "" {
		t.Error(diff)
	}
	pause(second.ID.Sender)
	for range 3 {
		first.box.call()
		must(t, w.turns(first, 1))
		must(t, w.turns(second, 1))
	}
	if got := woken(first.News, func() { must(t, w.turns(first, 1)); must(t, w.turns(second, 1)) }); got != nil {
		t.Errorf("%v are woken though nobody has room", got)
	}
}

// The end of an intent of an ordering group frees the next one, perhaps for another lane.
// All lanes are woken only for an intent that the feeder has not seen opened.
func TestFeederFrees(t *testing.T) {
	f := newFeeding(t).feeder()
	group := intent.Row{Order: "a"}
	alone, first := intent.Waiting{ID: chain.IntentID{1}}, intent.Waiting{ID: chain.IntentID{2}, Row: group}
	second := intent.Waiting{ID: chain.IntentID{3}, Row: group, From: intent.From{Pool: "another"}}
	third := intent.Waiting{ID: chain.IntentID{4}, Row: group}
	open := func(w intent.Waiting) intent.Change { return intent.Change{ID: w.ID, Open: &w} }
	closed := func(w intent.Waiting) intent.Change { return intent.Change{ID: w.ID, Close: true} }
	for _, c := range []struct {
		name   string
		change intent.Change
		fresh  []intent.Waiting
		more   bool
	}{
		{"a new one", open(alone), []intent.Waiting{alone}, false},
		{"a new one of a group", open(first), []intent.Waiting{first}, false},
		{"the next of the group", open(second), []intent.Waiting{second}, false},
		{"the last of the group", open(third), []intent.Waiting{third}, false},
		{"it has a nonce", intent.Change{ID: alone.ID, Place: &intent.Place{}}, nil, false},
		{"it has come out", closed(alone), nil, false},
		{"that of the group waits again", intent.Change{ID: first.ID, Requeue: true}, []intent.Waiting{first}, false},
		{"the last of the group has come out", closed(third), []intent.Waiting{first}, false},
		{"the first of the group has come out", closed(first), []intent.Waiting{second}, false},
		{"the group has come out", closed(second), nil, false},
		{"one from before", intent.Change{ID: chain.IntentID{9}, Close: true}, nil, true},
		{"one waits again", intent.Change{ID: alone.ID, Requeue: true}, nil, true},
	} {
		fresh, more := f.freed([]intent.Change{c.change})
		if diff := cmp.Diff(c.fresh, fresh); diff != "" || more != c.more {
			t.Errorf("%s: %v, %s", c.name, more, diff)
		}
	}
}

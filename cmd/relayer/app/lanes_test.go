package app

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// laneOf is a client's n-th lane.
func laneOf(client string, n int) chain.Sequence {
	id := chain.Sequence{Chain: onTempo, Key: chain.NonceKey{30: byte(n >> 8), 31: byte(n)}}
	copy(id.Key[:], client)
	return id
}

func asking(client string, from, to int, first eventlog.Position) (all []laneDemand) {
	for n := from; n < to; n++ {
		all = append(all, laneDemand{id: laneOf(client, n), client: client, first: first + eventlog.Position(n)})
	}
	return all
}

// laneHall opens and evicts lanes as follow does.
type laneHall struct {
	heldLanes
	now     time.Time
	busy    map[chain.Sequence]bool // lanes with open nonces
	stopped []chain.Sequence
}

func newLaneHall(most, share int) *laneHall {
	return &laneHall{heldLanes: heldLanes{most: most, share: share, lanes: map[chain.Sequence]*heldLane{}}, now: time.Unix(1, 0), busy: map[chain.Sequence]bool{}}
}

// round sets the demand, and returns the opened lanes.
func (h *laneHall) round(wanted ...laneDemand) (opened []string) {
	h.now = h.now.Add(time.Second)
	h.want(wanted, h.now)
	for _, d := range h.next(wanted, func(id chain.Sequence) bool { return !h.busy[id] }) {
		h.lanes[d.id] = &heldLane{client: d.client, wanted: h.now, stop: func() { h.stopped = append(h.stopped, d.id) }}
		opened = append(opened, fmt.Sprint(d.client, d.id.Key[31]))
	}
	return opened
}

// A client whose intents ask first, for more lanes than there are, leaves lanes to another
// client. The other's intents do not wait for the first client's lanes to end.
func TestCrowdOfLanesKeepsNobodyWaiting(t *testing.T) {
	h := newLaneHall(8, 2)
	crowd := asking("crowd", 0, 100, 1)
	if got := h.round(crowd...); !slices.Equal(got, []string{"crowd0", "crowd1"}) {
		t.Fatalf("opened %v", got)
	}
	if got := h.round(append(crowd, asking("victim", 0, 3, 1000)...)...); !slices.Equal(got, []string{"victim0", "victim1"}) {
		t.Errorf("opened %v", got)
	}
	if h.fullest() != 2 || len(h.stopped) != 0 {
		t.Errorf("one has %d lanes, %v are evicted", h.fullest(), h.stopped)
	}
}

// Idle and settled lanes are evicted at once when other lanes are wanted.
func TestIdleLanesAreEvicted(t *testing.T) {
	h := newLaneHall(4, 3)
	h.round(asking("crowd", 0, 3, 1)...)
	h.busy[laneOf("crowd", 0)] = true
	// Its first two lanes have no demand any more, and it asks for a fourth and a fifth.
	if got := h.round(asking("crowd", 2, 5, 1)...); !slices.Equal(got, []string{"crowd3"}) {
		t.Errorf("opened %v", got)
	}
	if !slices.Equal(h.stopped, []chain.Sequence{laneOf("crowd", 1)}) {
		t.Errorf("evicted %v", h.stopped)
	}
	// The last lane goes to another client, and for that client's second no lane is idle.
	if got := h.round(append(asking("crowd", 2, 4, 1), asking("victim", 0, 2, 9)...)...); !slices.Equal(got, []string{"victim0"}) {
		t.Errorf("opened %v", got)
	}
	delete(h.busy, laneOf("crowd", 0))
	if got := h.round(append(asking("crowd", 2, 4, 1), asking("victim", 0, 2, 9)...)...); !slices.Equal(got, []string{"victim1"}) {
		t.Errorf("opened %v", got)
	}
}

// Without API keys all requests are one client's, which may have all lanes. Unfinished lanes
// without demand are finished, after clients' lanes.
func TestLanesOfEverybody(t *testing.T) {
	h := newLaneHall(4, 1)
	unfinished := laneDemand{id: laneOf("old", 1), unfinished: true}
	if got := h.round(append(asking("", 0, 3, 1), unfinished)...); len(got) != 4 {
		t.Errorf("opened %v", got)
	}
	if h.fullest() != 0 {
		t.Errorf("a client has %d", h.fullest())
	}
}

// A lane that two clients ask for is opened once, and counts for one of them as long as that
// client asks for it.
func TestLaneOfTwoClients(t *testing.T) {
	h := newLaneHall(4, 1)
	id := laneOf("a", 1)
	a, b := laneDemand{id: id, client: "a", first: 1}, laneDemand{id: id, client: "b", first: 2}
	if got := h.round(b, a); !slices.Equal(got, []string{"a1"}) {
		t.Errorf("opened %v", got)
	}
	h.round(a, b)
	if held := h.lanes[id]; held.client != "a" || held.idle {
		t.Errorf("%+v", held)
	}
	h.round(b)
	if held := h.lanes[id]; held.client != "b" {
		t.Errorf("%+v", held)
	}
	h.round()
	if held := h.lanes[id]; !held.idle {
		t.Errorf("%+v", held)
	}
}

// A client that asks for many lanes gets a few in each round, and another client's are opened in the
// same round. Without API keys there is only one client, whose lanes are opened at once.
func TestFewLanesAreOpenedInARound(t *testing.T) {
	h := newLaneHall(1000, 250)
	crowd := asking("crowd", 0, 250, 1)
	for n := 1; n <= 3; n++ {
		if got := h.round(crowd...); len(got) != opensMost || h.fullest() != n*opensMost {
			t.Fatalf("opened %v, the client has %d", got, h.fullest())
		}
	}
	got := h.round(append(crowd, asking("victim", 0, 3, 1000)...)...)
	if len(got) != opensMost+3 || !slices.Contains(got[:6], "victim2") {
		t.Errorf("opened %v", got)
	}
	if got := newLaneHall(1000, 250).round(asking("", 0, 200, 1)...); len(got) != 200 {
		t.Errorf("without API keys %d are opened", len(got))
	}
}

// A lane is called when more intents wait for it than before. So it finds those that another replica
// has fed to the queue.
func TestLanesWithNewIntentsAreCalled(t *testing.T) {
	id := func(key byte) chain.Sequence { return chain.Sequence{Key: chain.NonceKey{31: key}} }
	wants := func(key byte, client string, waiting int) laneDemand {
		return laneDemand{id: id(key), client: client, waiting: waiting}
	}
	h := heldLanes{most: 9, share: 9, lanes: map[chain.Sequence]*heldLane{id(1): {}, id(2): {}}}
	for n, round := range []struct {
		wanted []laneDemand
		called []chain.Sequence
	}{
		{nil, nil},
		{[]laneDemand{wants(1, "ann", 1), wants(3, "ann", 1)}, []chain.Sequence{id(1)}}, // 3 is not held here
		{[]laneDemand{wants(1, "ann", 1)}, nil},
		{[]laneDemand{wants(1, "ann", 1), wants(1, "bob", 1), wants(2, "bob", 2)}, []chain.Sequence{id(1), id(2)}},
		{[]laneDemand{wants(1, "bob", 1), wants(2, "bob", 2)}, nil},
		{nil, nil}, // they have nonces
		{[]laneDemand{wants(2, "bob", 1)}, []chain.Sequence{id(2)}},
	} {
		if got := h.fresh(round.wanted); !slices.Equal(got, round.called) {
			t.Errorf("round %d: %v, want %v", n, got, round.called)
		}
	}
}

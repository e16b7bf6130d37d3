package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// begins makes an intent sleep until a time, in Unix seconds.
func begins(at int64) func(*intent.Waiting) {
	return func(w *intent.Waiting) { w.NotBefore = uint64(at) } //nolint:gosec // a time
}

// waiting checks how many intents of chain 1 wait, as far as demand counts them.
func (q *intentQueue) waiting(want int) {
	q.t.Helper()
	all, err := q.Demand(soon(q.t), 1)
	check(q.t, err)
	n := 0
	for _, d := range all {
		n += d.Waiting
	}
	if n != want {
		q.t.Errorf("demand counts %d waiting intents, not %d: %+v", n, want, all)
	}
}

// until lets the clock reach a time, in Unix seconds.
func (q *intentQueue) until(at int64) {
	if left := time.Unix(at, 0).Sub(q.clock.Now()); left > 0 {
		q.clock.Elapse(left + 10*time.Millisecond)
	}
}

// A sleeping intent is given to no lane and asks for none. From its time on it has its place by
// position, before intents that were requested later. It still counts as its client's.
func intentAsleep(t *testing.T, q *intentQueue) {
	now := q.clock.Now().Unix()
	soonest, later := now+2, now+4
	q.apply(asks(intentOf(1, begins(later), ofClient("a")), intentOf(2, begins(soonest), ofClient("a")), intentOf(3, ofClient("a")), intentOf(4, ofClient("a"), begins(now-100)))...)
	q.waiting(2)
	q.claim(laneClaim(0, 0, 1), 3)
	q.claim(laneClaim(0, 0, 10), 4)
	if n, err := q.Open(soon(t), "a", 10); n != 4 || err != nil {
		t.Errorf("the client has %d open intents, %v", n, err)
	}
	q.apply(asks(intentOf(5, ofClient("a")))...)
	q.until(soonest)
	q.waiting(4) // 2, 5, and the claimed ones
	q.claim(laneClaim(0, 0, 1), 2)
	q.until(later)
	q.claim(laneClaim(0, 0, 10), 1, 5)
	q.apply(places(1, 0, 0), requeues(1)) // a time that has passed holds up nothing any more
	q.claim(laneClaim(0, 0, 10), 1)
}

// Later intents of an ordering group wait for the sleeper before them, and other groups do not. A
// sleeper that is canceled holds up nothing.
func intentAsleepInOrder(t *testing.T, q *intentQueue) {
	at := q.clock.Now().Unix() + 2
	q.apply(asks(
		intentOf(1, inRow("c", "o")), intentOf(2, inRow("c", "o"), begins(at)), intentOf(3, inRow("c", "o")),
		intentOf(4, inRow("c", "p"), begins(at)), intentOf(5, inRow("c", "p")),
		intentOf(6, inRow("c", "q"), begins(at+1000)), intentOf(7, inRow("c", "q")))...)
	q.claim(laneClaim(0, 0, 10), 1)
	q.apply(places(1, 0, 0))
	q.claim(laneClaim(0, 0, 10)) // 2 sleeps, although the group is in this lane
	if ahead, err := q.Ahead(soon(t), intent.Row{Chain: 1, Client: "c", Order: "o"}, 3); ahead != intentID(2) || err != nil {
		t.Errorf("before intent 3 is %s, %v", ahead, err)
	}
	q.apply(closes(6))
	q.claim(laneClaim(1, 0, 10), 7)
	q.until(at)
	got, err := q.Claim(soon(t), laneClaim(0, 0, 10))
	check(t, err)
	var ids, behind []chain.IntentID
	for _, c := range got {
		ids, behind = append(ids, c.ID), append(behind, c.Behind)
	}
	if d := cmp.Diff([]chain.IntentID{intentID(2), intentID(3), intentID(4), intentID(5)}, ids); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]chain.IntentID{intentID(1), intentID(2), {}, intentID(4)}, behind, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("before them: %s", d)
	}
}

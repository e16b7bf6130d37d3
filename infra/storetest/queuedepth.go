package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

func depth(t *testing.T, q *queue) {
	ctx := soon(t)
	if d, err := q.Depth(ctx, 1); err != nil || d != (tx.Depth{}) {
		t.Errorf("an empty queue: %+v, %v", d, err)
	}
	rows := make([]tx.Work, 0, q.window+6)
	for n := range q.window + 2 { // one sequence: the last two are parked
		rows = append(rows, q.row(n, address(1), uint64(n)))
	}
	for n := 100; n < 105; n++ { // each in its own sequence
		rows = append(rows, q.row(n, address(n), 0))
	}
	rows[0].NextAt = q.clock.Now().Add(-time.Hour)
	later := q.row(200, address(200), 0)
	later.NextAt = q.clock.Now().Add(time.Hour)
	elsewhere := q.row(300, address(300), 0)
	elsewhere.Chain = 2
	q.apply(opens(append(rows, later, elsewhere)...)...)
	q.apply(announce(100, block(1)), announce(101, block(2)), seal(101, block(2)), watched(102))
	leased := q.lease("a", time.Minute, 1) // the oldest
	q.wantHashes("leased", leased, 0)
	check(t, q.Done(ctx, "a", []tx.Done{{Chain: 1, Hash: hash(0), Attempts: 1, NextAt: q.clock.Now().Add(time.Hour), WaitNonce: 1}}))

	d, err := q.Depth(ctx, 1)
	check(t, err)
	oldest := d.OldestDue
	d.OldestDue = 0
	want := tx.Depth{
		Open: q.window + 3, Waiting: 1, Parked: 2, Sent: 1, Watched: 1, Announced: 1, Sealed: 1,
		Due: q.window - 1 + 2, // neither the first, which is not due, nor the row for later
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	if oldest < time.Minute || oldest > time.Minute+patience {
		t.Errorf("the oldest has been due for %v, want a minute", oldest)
	}
}

package storetest

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// soonest checks the list of rows to lease next. No row in it is parked, watched or ended. A
// leased row may be in it, but late.
func soonest(t *testing.T, q *queue) {
	ctx, now := soon(t), q.clock.Now()
	var rows []tx.Work
	for n, in := range []time.Duration{time.Hour, 0, 5 * time.Minute, -time.Minute, 48 * time.Hour, time.Minute, time.Minute} {
		w := q.row(n, address(n), 0)
		w.NextAt = now.Add(in)
		rows = append(rows, w)
	}
	away := q.row(20, address(1), 0)
	away.Chain = 2
	q.apply(opens(append(rows, away)...)...)
	q.apply(watched(5), announce(6, block(1)))
	for range 2 * 16 { // more than any window under test: the last is parked
		q.apply(opens(q.row(100+len(rows), address(99), uint64(len(rows))))...)
		rows = append(rows, tx.Work{})
	}
	got, err := q.Soon(ctx, 1, 3)
	check(t, err)
	if len(got) != 3 || got[0].Hash != hash(3) {
		t.Fatalf("the 3 soonest: %d, the first due at %s", len(got), got[0].NextAt)
	}
	got, err = q.Soon(ctx, 1, 1000)
	check(t, err)
	seen, last := map[int]int{}, time.Time{}
	for _, w := range got {
		if w.NextAt.Before(last) || w.Parked || w.Phase != tx.Open || w.Chain != 1 {
			t.Errorf("%s: due at %s after one at %s, %s, parked %v", w.Hash, w.NextAt, last, w.Phase, w.Parked)
		}
		last = w.NextAt
		for n := range 5 {
			if w.Hash == hash(n) {
				seen[n]++
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("of 5 rows to be leased, %d are listed", len(seen))
	}
	if leased := q.lease("a", time.Hour, 1); len(leased) != 1 || leased[0].Hash != hash(3) {
		t.Fatal("the row that is due longest is not leased first")
	}
	if got, err = q.Soon(ctx, 1, 1); err != nil || len(got) != 1 || got[0].Hash == hash(3) {
		t.Errorf("a leased row comes first: %v", err)
	}
	if got, err = q.Soon(ctx, 1, 0); err != nil || len(got) != 0 {
		t.Errorf("asked for none: %d, %v", len(got), err)
	}
}

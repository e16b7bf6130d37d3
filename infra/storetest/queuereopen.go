package storetest

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// reopenedEarly withdraws the verdicts of rows that are not eligible yet: another transaction
// had used their nonces, in a block that left the chain. Their bytes stay unpublished until
// they are eligible. Rows that were sent before are due again at once.
func reopenedEarly(t *testing.T, q *queue) {
	now := q.clock.Now().Truncate(time.Second)
	in := func(d time.Duration) time.Time { return now.Add(d).UTC() }
	var rows []tx.Work
	for n := range 4 {
		w := q.row(n, address(n), 0)
		w.EligibleAt, w.NextAt = uint64(in(time.Hour).Unix()), in(time.Hour) //nolint:gosec // after 1970
		rows = append(rows, w)
	}
	rows[2].EligibleAt = uint64(in(-time.Hour).Unix()) //nolint:gosec // after 1970
	q.apply(opens(rows...)...)
	q.apply(on(3, func(c *tx.Change) { c.Attempt = &tx.Attempted{Number: 1, At: now, NextAt: in(time.Minute)} }))
	for n := range rows {
		q.apply(announce(n, block(7)))
		q.apply(on(n, func(c *tx.Change) {
			c.Reopen = &tx.Reopened{To: tx.Open, At: in(-time.Second), Lead: time.Duration(n) * time.Minute}
		}))
	}
	for n, want := range []time.Time{in(time.Hour), in(59 * time.Minute), in(-time.Second), in(-time.Second)} {
		if got := q.find(n); !got.NextAt.Equal(want) || got.Phase != tx.Open {
			t.Errorf("row %d: %s at %v, want %v", n, got.Phase, got.NextAt, want)
		}
	}
	q.wantSet("due", q.lease("worker", time.Minute, 10), 2, 3)
}

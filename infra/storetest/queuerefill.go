package storetest

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// refilled checks that rows written by the version before clients are listed, and get the
// missing fields. A claim leaves the named sender's sequence, and each client's usage is
// counted.
func refilled(t *testing.T, q *queue) {
	window, victim := q.window, address(1)
	var old []tx.Work
	for n := range window {
		old = append(old, q.row(n, victim, uint64(n)))
	}
	old = append(old, q.row(100, victim, 5000), q.row(101, victim, 5001))
	for i := range old {
		old[i].Client, old[i].Bytes, old[i].Claimed = "", 0, false
	}
	q.apply(opens(old...)...)
	full := q.row(200, address(2), 1)
	full.Bytes = 10
	q.apply(opens(full)...)
	q.wantParked("of before", map[int]bool{0: false, window - 1: false, 100: true, 101: true})
	var refs []tx.Ref
	for after, more := (tx.Ref{}), true; more; {
		page, err := q.Unfilled(soon(t), after, 10)
		check(t, err)
		if refs, more = append(refs, page...), len(page) == 10; more {
			after = page[9]
		}
	}
	if len(refs) != len(old) {
		t.Fatalf("%d rows are listed, not %d", len(refs), len(old))
	}
	refill := func(n int, r tx.Refill) tx.Change { return on(n, func(c *tx.Change) { c.Refill = &r }) }
	var changes []tx.Change
	for n := range window {
		changes = append(changes, refill(n, tx.Refill{Client: "mallory", Bytes: 100, Claimed: true}))
	}
	changes = append(changes, refill(100, tx.Refill{Client: "wallet", Bytes: 7}), refill(200, tx.Refill{Client: "mallory", Bytes: 9, Claimed: true}))
	q.apply(changes...)
	q.apply(changes...)
	q.wantParked("filled in", map[int]bool{0: false, 100: false, 101: false})
	if next, err := q.NextFree(soon(t), chain.Sequence{Chain: 1, Sender: victim}, 0, nil); err != nil || next != 0 {
		t.Errorf("the next free nonce is %d, %v", next, err)
	}
	if got := q.find(200); got.Claimed || got.Bytes != 10 {
		t.Errorf("a row that lacks nothing is %+v", got)
	}
	for client, want := range map[string]tx.Usage{
		"mallory": {Transactions: int64(window), Bytes: 100 * int64(window)}, "wallet": {Transactions: 1, Bytes: 7},
		"": {Transactions: 2, Bytes: 10},
	} {
		if got, _, err := q.Usage(soon(t), "scheduler", client); err != nil || got != want {
			t.Errorf("%q uses %+v, not %+v, %v", client, got, want, err)
		}
	}
	if left, err := q.Unfilled(soon(t), tx.Ref{}, 10); err != nil || len(left) != 1 || left[0].Hash != hash(101) {
		t.Errorf("left are %v, %v", left, err)
	}
}

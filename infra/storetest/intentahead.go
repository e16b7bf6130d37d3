package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// intentAhead: the nearest earlier intent of the ordering group without a nonce is found,
// claimed or not, among a bounded number of intents.
func intentAhead(t *testing.T, q *intentQueue) {
	row := inRow("c", "o")
	of := func(w intent.Waiting) intent.Row { return w.Row }
	ahead := func(in intent.Row, before, want int) {
		t.Helper()
		var id chain.IntentID
		if want != 0 {
			id = intentID(want)
		}
		if got, err := q.Ahead(soon(t), in, eventlog.Position(before)); err != nil || got != id {
			t.Errorf("ahead of %d is %s, %v; not %d", before, got, err, want)
		}
	}
	group := of(intentOf(1, row))
	ahead(group, 1, 0)
	q.apply(asks(
		intentOf(1, row), intentOf(2, inRow("d", "o")), intentOf(3, onChain(2), row), intentOf(4, row), intentOf(5), intentOf(6, row, bySigner(1)), intentOf(7, row),
	)...)
	ahead(group, 1, 0)
	ahead(group, 4, 1)
	ahead(group, 6, 4)
	ahead(group, 7, 6) // whoever signs it
	ahead(of(intentOf(3, onChain(2), row)), 4, 3)
	ahead(intent.Row{}, 9, 0)
	q.claim(laneClaim(0, 0, 3), 1, 2, 4)
	ahead(group, 6, 4) // a claim is no nonce
	q.apply(places(4, 0, 0))
	ahead(group, 6, 1)
	q.apply(places(1, 0, 0))
	ahead(group, 6, 0)
	q.apply(requeues(1))
	ahead(group, 6, 1)
	q.apply(closes(1), closes(6))
	ahead(group, 7, 0)

	long := inRow("c", "long")
	first, last := 100, 100+intent.AheadMost+1
	var changes []intent.Change
	for n := first; n <= last; n++ {
		changes = append(changes, asks(intentOf(n, long))...)
		if n > first {
			changes = append(changes, places(n, 0, 0))
		}
	}
	q.apply(changes...)
	ahead(of(intentOf(first, long)), last, 0) // it is too far ahead
	ahead(of(intentOf(first, long)), last-1, first)
}

// intentFees: a claim tells the fee ceiling and the size of each intent.
func intentFees(t *testing.T, q *intentQueue) {
	paying := func(most string, size int) func(*intent.Waiting) {
		return func(w *intent.Waiting) {
			amount, err := intent.ParseAmount(most)
			check(t, err)
			w.MaxFee, w.Size = amount, size
		}
	}
	asked := []intent.Waiting{
		intentOf(1, paying("1", 1)), intentOf(2), intentOf(3, paying("115792089237316195423570985008687907853269984665640564039457584007913129639935", 1<<20)),
	}
	q.apply(asks(asked...)...)
	q.claim(laneClaim(0, 0, 3), 1, 2, 3)
	q.returns(laneClaim(0, 0, 3), 1, 2, 3)
	q.apply(places(1, 0, 0), places(3, 0, 0))
	q.apply(requeues(1), requeues(3))
	var got []intent.Waiting
	for _, c := range q.claim(laneClaim(1, 0, 3), 1, 2, 3) {
		got = append(got, c.Waiting)
	}
	if diff := cmp.Diff(asked, got); diff != "" {
		t.Error(diff)
	}
}

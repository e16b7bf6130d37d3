package storetest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// wantRivals checks the rows and the unread sequences that Rivals returns.
func (q *queue) wantRivals(what string, limit int, used map[chain.Sequence]uint64, unread []chain.Sequence, want ...int) {
	q.t.Helper()
	got, left, err := q.Rivals(soon(q.t), used, nil, limit)
	check(q.t, err)
	q.wantSet(what, got, want...)
	q.wantUnread(what, left, unread...)
}

func (q *queue) wantUnread(what string, got []chain.Sequence, want ...chain.Sequence) {
	q.t.Helper()
	order := func(a, b chain.Sequence) int { return bytes.Compare(a.Sender[:], b.Sender[:]) }
	if diff := cmp.Diff(slices.SortedFunc(slices.Values(want), order), slices.SortedFunc(slices.Values(got), order)); diff != "" {
		q.t.Errorf("%s: sequences that are not read whole: %s", what, diff)
	}
}

func rivals(t *testing.T, q *queue) {
	one, two := chain.Sequence{Chain: 1, Sender: address(1)}, chain.Sequence{Chain: 1, Sender: address(2), Key: chain.NonceKey{31: 9}}
	inTwo := q.row(20, address(2), 4)
	inTwo.NonceKey = two.Key
	away := q.row(30, address(1), 0)
	away.Chain = 2
	rows := []tx.Work{inTwo, away, q.row(21, address(2), 4)}
	for n := range 6 {
		rows = append(rows, q.row(n, address(1), uint64(n)))
	}
	q.apply(opens(rows...)...)
	q.apply(watched(1), announce(2, block(5)), seal(3, block(5)))
	both := map[chain.Sequence]uint64{one: 5, two: 5}
	q.wantRivals("below 5", 100, both, nil, 0, 1, 4, 20)
	q.wantRivals("below 4", 100, map[chain.Sequence]uint64{one: 4, two: 4}, nil, 0, 1)
	q.wantRivals("below 0", 100, map[chain.Sequence]uint64{one: 0}, nil)
	q.wantRivals("of nothing", 100, nil, nil)
	q.wantRivals("none", 0, both, []chain.Sequence{one, two})
	q.wantRivals("as many as there are", 3, map[chain.Sequence]uint64{one: 5}, nil, 0, 1, 4)
	many := map[chain.Sequence]uint64{one: 5}
	for n := range 500 {
		many[chain.Sequence{Chain: 1, Sender: address(1000 + n)}] = 7
	}
	q.wantRivals("of many sequences", 100, many, nil, 0, 1, 4)

	got, unread, err := q.Rivals(soon(t), both, []chain.Hash{hash(0), hash(20), hash(77)}, 2)
	check(t, err)
	q.wantSet("but for the mined ones", got, 1, 4)
	q.wantUnread("but for the mined ones", unread)
	if diff := cmp.Diff(q.find(4), got[slices.IndexFunc(got, func(w tx.Work) bool { return w.Hash == hash(4) })]); diff != "" {
		t.Error("a rival differs from the result of Find:", diff)
	}
}

// rivalsShared checks that the rows of one sequence leave none of another's out, however many
// they are, and that each sequence with rows left is named.
func rivalsShared(t *testing.T, q *queue) {
	crowd, alone := chain.Sequence{Chain: 1, Sender: address(1)}, chain.Sequence{Chain: 1, Sender: address(2)}
	rows := []tx.Work{q.row(900, alone.Sender, 0)}
	for n := range 30 {
		rows = append(rows, q.row(n, crowd.Sender, 0))
	}
	q.apply(opens(rows...)...)
	used := map[chain.Sequence]uint64{crowd: 1, alone: 1}
	for n := range 50 { // sequences without rows take no part
		used[chain.Sequence{Chain: 1, Sender: address(1000 + n)}] = 1
	}
	for _, limit := range []int{2, 10, 29} {
		got, unread, err := q.Rivals(soon(t), used, nil, limit)
		check(t, err)
		if !slices.ContainsFunc(got, func(w tx.Work) bool { return w.Hash == hash(900) }) || len(got) != limit/2+1 {
			t.Errorf("of 31 rows, asked for %d: %d, of which %d in the crowd", limit, len(got), len(got)-1)
		}
		q.wantUnread("the crowd", unread, crowd)
	}
	got, unread, err := q.Rivals(soon(t), used, nil, 1)
	check(t, err)
	if len(got) != 1 || len(unread) == 0 || !slices.Contains(append(unread, got[0].Named()), alone) {
		t.Errorf("asked for 1: %d, and %v are not read whole", len(got), unread)
	}
	q.wantRivals("one sequence has it all", 30, map[chain.Sequence]uint64{crowd: 1}, nil, numbers(0, 30)...)

	// Claims come last, and a sequence with claims alone after all others.
	q.apply(opens(q.claim(901, alone.Sender, 0, "b"), q.claim(902, address(3), 0, "b"))...)
	claimed := chain.Sequence{Chain: 1, Sender: address(3)}
	q.wantRivals("its own first", 1, map[chain.Sequence]uint64{alone: 1, claimed: 1}, []chain.Sequence{alone, claimed}, 900)
	q.wantRivals("and the claim", 4, map[chain.Sequence]uint64{alone: 1, claimed: 1}, nil, 900, 901, 902)
}

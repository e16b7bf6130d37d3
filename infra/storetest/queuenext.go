package storetest

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

func nextFree(t *testing.T, q *queue) {
	ctx := soon(t)
	of := func(n int, key byte) chain.Sequence {
		return chain.Sequence{Chain: 1, Sender: address(n), Key: chain.NonceKey{31: key}}
	}
	var rows []tx.Work
	for n, nonce := range []uint64{3, 4, 5, 5, 6, 8, 9, 1 << 63, 1<<63 + 1} { // 7 is missing, 5 occurs twice
		rows = append(rows, q.row(n, address(1), nonce))
	}
	other := q.row(20, address(1), 7)
	other.NonceKey = chain.NonceKey{31: 9}
	away := q.row(21, address(1), 7)
	away.Chain = 2
	q.apply(opens(append(rows, other, away, q.row(22, address(2), 7))...)...)
	wants := func(what string, s chain.Sequence, from, want uint64) {
		t.Helper()
		got, err := q.NextFree(ctx, s, from, nil)
		check(t, err)
		if got != want {
			t.Errorf("%s: the next free nonce from %d on is %d, want %d", what, from, got, want)
		}
	}
	one := of(1, 0)
	wants("before the first", one, 2, 2)
	wants("up to the gap", one, 3, 7)
	wants("in the midst", one, 5, 7)
	wants("in the gap", one, 7, 7)
	wants("past the gap", one, 8, 10)
	wants("beyond 63 bits", one, 1<<63, 1<<63+2)
	wants("another key", of(1, 9), 7, 8)
	wants("another sender", of(2, 0), 7, 8)
	wants("nobody", of(3, 0), 7, 7)

	// Counting only one client's rows, other clients' rows are gaps.
	ann, bob := q.row(30, address(4), 3), q.row(31, address(4), 4)
	ann.Client, bob.Client = "ann", "bob"
	q.apply(opens(ann, bob)...)
	for want, clients := range map[uint64][]string{3: {}, 4: {"ann"}, 5: {"bob", "ann"}} {
		if got, err := q.NextFree(ctx, of(4, 0), 3, clients); err != nil || got != want {
			t.Errorf("of %q the next free nonce is %d, want %d, %v", clients, got, want, err)
		}
	}
	if got, err := q.NextFree(ctx, of(4, 0), 4, []string{"ann"}); err != nil || got != 4 {
		t.Errorf("behind another's, the next free nonce is %d, %v", got, err)
	}

	expired := on(1, func(c *tx.Change) { c.Announce = &tx.Verdict{Status: tx.StatusExpired, Block: block(5)} })
	q.apply(announce(0, block(5)))
	wants("executed, not final", one, 3, 7)
	q.apply(expired)
	wants("expired", one, 3, 4)
	q.apply(reopen(1, tx.Open, q.clock.Now()), watched(4))
	wants("canceled", one, 3, 6)
}

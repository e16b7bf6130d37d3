package storetest

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
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

// nextFreeOfMany checks sequences with more rows than a store reads at once: many nonces, and many
// rows at one nonce.
func nextFreeOfMany(t *testing.T, q *queue) {
	const many = 300
	sender, n := address(1), 0
	var rows []tx.Work
	add := func(nonce uint64, client string, times int) {
		for range times {
			n++
			row := q.row(n, sender, nonce)
			row.Client = client
			rows = append(rows, row)
		}
	}
	add(3, "ann", 3*many)
	for nonce := range uint64(many) {
		add(4+nonce, "ann", 1)
	}
	add(50, "bob", many)
	add(4+many, "bob", many)
	add(4+many, "ann", 1)
	add(5+many, "bob", 3*many)
	for nonce := range uint64(many) { // behind the gap
		add(6+many+nonce, "ann", 1)
	}
	q.apply(opens(rows...)...)
	for _, want := range []struct {
		from, next uint64
		clients    []string
	}{
		{3, 5 + many, []string{"ann"}},
		{2, 2, []string{"ann"}},
		{3, 6 + 2*many, []string{"ann", "bob"}},
		{3, 6 + 2*many, nil},
		{5 + many, 5 + many, []string{"ann"}},
		{50, 51, []string{"bob"}},
		{4 + many, 6 + many, []string{"bob"}},
	} {
		got, err := q.NextFree(soon(t), chain.Sequence{Chain: 1, Sender: sender}, want.from, want.clients)
		if err != nil || got != want.next {
			t.Errorf("of %q the next free nonce from %d on is %d, want %d, %v", want.clients, want.from, got, want.next, err)
		}
	}
}

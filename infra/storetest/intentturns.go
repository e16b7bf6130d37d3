package storetest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// intentCrowd: a client's intents come with the next claim, as many as another client's,
// however many intents the other has queued before.
func intentCrowd(t *testing.T, q *intentQueue) {
	const crowd, rows, batch = 2000, 20, 500
	var asked []intent.Waiting
	for n := 1; n <= crowd; n++ {
		w := intentOf(n, ofClient("crowd"))
		switch n % 4 {
		case 1:
			bySigner(0)(&w)
		case 2:
			underKey(0)(&w)
		case 3:
			inRow("crowd", string(rune('a'+n%rows)))(&w)
		}
		asked = append(asked, w)
	}
	for part := range slices.Chunk(asked, batch) {
		q.apply(asks(part...)...)
	}
	q.apply(asks(intentOf(crowd+1, ofClient("victim")), intentOf(crowd+2, ofClient("victim"), bySigner(0)), intentOf(crowd+3, ofClient("victim")))...)
	q.claim(laneClaim(0, 0, 5), 1, crowd+1, 2, crowd+2, 3)
	one := laneClaim(0, 0, 1)
	one.Turn = "crowd"
	q.claim(one, crowd+3)
	// The same holds for intents that have lost their nonce: the crowd's come first only among
	// the crowd's.
	var back []intent.Change
	for n := 1; n <= 300; n++ {
		back = append(back, places(n, 0, 0))
	}
	for n := 1; n <= 300; n++ {
		back = append(back, requeues(n))
	}
	q.apply(back...)
	q.apply(places(crowd+1, 0, 0), requeues(crowd+1))
	q.claim(laneClaim(0, 0, 3), 1, crowd+1, 2)
}

// intentTurns: claims for one intent each serve all clients equally, if each claim begins after
// the client of the one before.
func intentTurns(_ *testing.T, q *intentQueue) {
	q.apply(asks(
		intentOf(1, ofClient("b")), intentOf(2, ofClient("b")), intentOf(3, ofClient("b")), intentOf(4, ofClient("b"), bySigner(0)),
		intentOf(5, ofClient("a")), intentOf(6, ofClient("a")), intentOf(7, ofClient("c"), underKey(0)), intentOf(8), intentOf(9, ofClient("a")),
	)...)
	c := laneClaim(0, 0, 1)
	for _, want := range []int{5, 1, 7, 8, 6, 2, 9, 3, 4} {
		c.Turn = q.claim(c, want)[0].Client
	}
	q.claim(c)
	q.returns(c, 2, 3, 5, 7, 9)
	c.Turn, c.Limit = "b", 10
	q.claim(c, 7, 5, 2, 9, 3)
	q.returns(c, 2, 3, 5, 7, 9)
	c.Turn, c.After = "", 4
	q.claim(c, 5, 7, 9) // each client's, beginning there
}

// intentTurnsInOrder: turns do not change the order within ordering groups.
func intentTurnsInOrder(_ *testing.T, q *intentQueue) {
	in := func(client, order string) func(*intent.Waiting) {
		return func(w *intent.Waiting) {
			ofClient(client)(w)
			inRow(client, order)(w)
		}
	}
	q.apply(asks(
		intentOf(1, in("a", "o")), intentOf(2, in("a", "o")), intentOf(3, in("b", "o")), intentOf(4, in("a", "o")), intentOf(5, in("b", "o")),
		intentOf(6, ofClient("c")), intentOf(7, in("a", "p"), bySigner(1)), intentOf(8, in("a", "p")), intentOf(9, ofClient("b")),
	)...)
	q.behind(q.claim(laneClaim(0, 0, 4), 1, 3, 6, 2), 0, 0, 0, 1)
	q.claim(laneClaim(1, 0, 10), 7, 9, 8) // the other groups are in the other lane
	next := laneClaim(0, 0, 4)
	next.Turn = "a"
	q.behind(q.claim(next, 5, 4), 3, 2)
}

func intentDemand(t *testing.T, q *intentQueue) {
	q.apply(asks(
		intentOf(1), intentOf(2), intentOf(3, underKey(9)), intentOf(4, bySigner(0)), intentOf(5, bySigner(0), underKey(9)),
		intentOf(6, bySigner(0), underKey(9)), intentOf(7, onChain(2)), intentOf(8, underKey(9), ofClient("c")), intentOf(9, underKey(9), ofClient("c")),
	)...)
	q.apply(places(1, 0, 0), places(5, 0, 9))
	q.claim(laneClaim(0, 0, 1), 2)
	d, err := q.Demand(soon(t), 1)
	check(t, err)
	zero, nine := &chain.NonceKey{}, &chain.NonceKey{31: 9}
	pool, signer := intent.From{Pool: intentPool}, intent.From{Signer: &signers[0]}
	want := []intent.Demand{
		{From: pool, First: 2, Waiting: 1}, {From: pool, Key: nine, First: 3, Waiting: 1}, {From: pool, Key: nine, Client: "c", First: 8, Waiting: 2},
		{From: signer, First: 4, Waiting: 1}, {From: signer, Key: zero, First: 1, Assigned: 1}, {From: signer, Key: nine, First: 5, Waiting: 1, Assigned: 1},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
}

// intentOpen counts all unfinished intents, on all chains: waiting, claimed, or with a nonce.
func intentOpen(t *testing.T, q *intentQueue) {
	open := func(client string, most, want int) {
		t.Helper()
		if n, err := q.Open(soon(t), client, most); err != nil || n != want {
			t.Errorf("%q has %d, %v; not %d", client, n, err, want)
		}
	}
	open("a", 10, 0)
	q.apply(asks(
		intentOf(1, ofClient("a")), intentOf(2, ofClient("a"), onChain(2)), intentOf(3, ofClient("a"), inRow("a", "o")), intentOf(4, ofClient("a"), inRow("a", "o")),
		intentOf(5, ofClient("ab")), intentOf(6),
	)...)
	open("a", 10, 4)
	open("a", 3, 3)
	open("ab", 10, 1)
	open("", 10, 1)
	q.claim(laneClaim(0, 0, 1), 1)
	q.apply(places(3, 0, 0), asks(intentOf(1, ofClient("a")))[0])
	open("a", 10, 4)
	q.apply(closes(3), closes(3), closes(2))
	open("a", 10, 2)
	q.apply(asks(intentOf(3, ofClient("a"), inRow("a", "o")))...) // its block has left the chain
	open("a", 10, 3)
}

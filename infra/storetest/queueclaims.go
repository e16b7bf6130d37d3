package storetest

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// claim is a row signed by an access key in a sender's name: its bytes name the same sequence
// as row's.
func (q *queue) claim(n int, sender chain.Address, nonce uint64, client string) tx.Work {
	w := q.row(n, sender, nonce)
	w.Claimed, w.Client, w.Bytes = true, client, 100
	return w
}

func confirm(n int) tx.Change { return on(n, func(c *tx.Change) { c.Confirm = true }) }

// claimsApart checks that rows with an unconfirmed sender take no place of the sender's,
// however many they are, and share one window of their client's.
func claimsApart(t *testing.T, q *queue) {
	window, victim := q.window, address(1)
	var claims []tx.Work
	for n := range 2 * window { // at used and free nonces, under the victim's name
		claims = append(claims, q.claim(n, victim, uint64(n), "b"))
	}
	claims = append(claims, q.claim(900, address(2), 1000, "b"), q.claim(901, victim, 1000, "c"))
	q.apply(opens(claims...)...)
	q.wantParked("claims", map[int]bool{0: false, window - 1: false, window: true, 900: true, 901: false})

	var own []tx.Work
	for n := range window {
		own = append(own, q.row(100+n, victim, uint64(5000+n)))
	}
	q.apply(opens(own...)...)
	q.wantWindow("the sender's own", 100, 100+window, window)
	free := func(from, want uint64) {
		t.Helper()
		got, err := q.NextFree(soon(t), chain.Sequence{Chain: 1, Sender: victim}, from, nil)
		check(t, err)
		if got != want {
			t.Errorf("the next free nonce from %d on is %d, want %d", from, got, want)
		}
	}
	free(0, 0)
	free(5000, 5000+uint64(window))
	if got := q.find(window); got.WaitNonce != 0 || got.Sender != victim || !got.Claimed || got.Bytes != 100 || got.Client != "b" {
		t.Errorf("a parked claim comes back as %+v", got)
	}
	// Claims at nonces that the chain has used are rivals like all other rows, but come last.
	sequence := chain.Sequence{Chain: 1, Sender: victim}
	q.wantRivals("the first rival", 1, map[chain.Sequence]uint64{sequence: 5001}, []chain.Sequence{sequence}, 100)
	q.wantRivals("rivals", 10, map[chain.Sequence]uint64{sequence: 2}, nil, 0, 1)
}

// claimsConfirmed checks that a confirmed row moves into the sequence that it names, by Confirm
// and by a block that holds it. When that block leaves the chain, the row moves back.
func claimsConfirmed(t *testing.T, q *queue) {
	window, sender := q.window, address(1)
	var rows []tx.Work
	for n := range window {
		rows = append(rows, q.row(100+n, sender, uint64(10+n)))
	}
	rows = append(rows, q.claim(1, sender, 5, "b"), q.claim(2, sender, 6, "b"), q.claim(3, sender, 500, "b"))
	q.apply(opens(rows...)...)
	last := 100 + window - 1
	q.wantParked("opened", map[int]bool{1: false, last: false, 3: false})

	q.apply(confirm(1), confirm(1))
	q.wantParked("one before the others", map[int]bool{1: false, last: true, last - 1: false})
	if q.find(1).Claimed {
		t.Error("a confirmed row is still a claim")
	}
	q.apply(confirm(3))
	q.wantParked("one behind the others", map[int]bool{3: true})
	q.apply(closed(1))
	q.wantParked("one gone", map[int]bool{last: false, 3: true})

	// A block that holds it proves its sender.
	s := chain.Sequence{Chain: 1, Sender: sender}
	free := func(what string, want uint64) {
		t.Helper()
		got, err := q.NextFree(soon(t), s, 6, nil)
		check(t, err)
		if got != want {
			t.Errorf("%s: the next free nonce is %d, want %d", what, got, want)
		}
	}
	free("claimed", 6)
	q.apply(announce(2, block(7)))
	free("executed", 7)
	q.apply(reopen(2, tx.Open, q.clock.Now()))
	free("its block has left the chain", 6)
	q.apply(confirm(2))
	free("confirmed", 7)
}

// claimsAsleep checks that claims and the sender's own rows do not wake each other.
func claimsAsleep(t *testing.T, q *queue) {
	sender, later := address(1), q.clock.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	q.apply(opens(q.row(1, sender, 0), q.row(2, sender, 7), q.claim(3, sender, 0, "b"), q.claim(4, sender, 7, "b"))...)
	q.wantSet("all are sent", q.lease("a", time.Hour, 10), 1, 2, 3, 4)
	var said []tx.Done
	for n := 1; n <= 4; n++ {
		said = append(said, tx.Done{Chain: 1, Hash: hash(n), NextAt: later, WaitNonce: 6})
	}
	check(t, q.Done(soon(t), "a", said))
	asleep := func(what string, want map[int]bool) {
		t.Helper()
		for n, sleeps := range want {
			if got := q.find(n); got.NextAt.Equal(later) != sleeps {
				t.Errorf("%s: row %d is due %s", what, n, got.NextAt)
			}
		}
	}
	expired := on(3, func(c *tx.Change) { c.Announce = &tx.Verdict{Status: tx.StatusStale, Block: block(5)} })
	q.apply(expired, closed(3))
	asleep("a claim has ended", map[int]bool{2: true, 4: true})
	waiting, err := q.Waiting(soon(t), 1, 10)
	check(t, err)
	if len(waiting) != 1 || waiting[0] != (chain.Sequence{Chain: 1, Sender: sender}) {
		t.Errorf("waiting: %+v", waiting)
	}
	q.apply(announce(1, block(6)))
	asleep("the sender's own has a verdict", map[int]bool{2: false, 4: true})
	_, err = q.Wake(soon(t), map[chain.Sequence]uint64{{Chain: 1, Sender: sender}: 50})
	check(t, err)
	asleep("the chain wants a later nonce", map[int]bool{4: true})
	q.apply(confirm(4))
	asleep("confirmed", map[int]bool{4: false})
	if got := q.find(4); got.WaitNonce != 0 {
		t.Errorf("a confirmed row waits for %d as before", got.WaitNonce)
	}
}

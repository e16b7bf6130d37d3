package watcher

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// submit accepts a transaction of a client; the queue is yet to be fed.
func (w *world) submit(client string, s chain.Signed) (hash chain.Hash) {
	w.t.Helper()
	hash = chain.Keccak(chaintest.EncodePlain(s))
	w.command(hash, tx.Accept{Accepted: tx.Accepted{
		Chain: moderato, Hash: hash, Sender: s.Sender, NonceKey: s.NonceKey, Nonce: s.Nonce, Window: s.Window,
		EligibleAt: max(s.Window.After, uint64(w.clock.now().Unix())), At: w.clock.now(), Client: client,
	}})
	return hash
}

// One client has more transactions with one nonce than one read of the board returns. They delay no
// verdict on another client's transactions. These are not sent soon, so only this read finds them.
func TestRivalsOfOneHideNoOthers(t *testing.T) {
	const victims = 8
	w := newWorld(t, 100)
	w.step()
	crowd := plain(0)
	for n := range rowsMax + 1 {
		crowd.Gas = uint64(100_000 + n)
		w.submit("crowd", crowd)
	}
	next := uint64(w.clock.now().Unix()) + 7*86400
	crowd.Gas = 7
	mined := [][]byte{chaintest.EncodePlain(crowd)}
	var hashes []chain.Hash
	for n := range victims {
		s := plain(0)
		s.Sender, s.Window = chain.Address{byte(200 + n)}, chain.Window{After: next}
		hashes = append(hashes, w.submit("victim", s))
		s.Window = chain.Window{}
		mined = append(mined, rivalOf(s))
	}
	w.feed()
	w.mine(mined...)
	w.step()
	for _, hash := range hashes {
		if s := w.state(hash); s.Status != tx.StatusStale {
			t.Errorf("the victim's transaction is %s when the block is read", s.Status)
		}
	}
	for range rowsMax/settledMax + 3 { // the other rows of the crowd, which a busy machine settles beside steps
		w.feed()
		w.mine()
		w.step()
	}
	for n := range rowsMax + 1 {
		crowd.Gas = uint64(100_000 + n)
		if s := w.state(chain.Keccak(chaintest.EncodePlain(crowd))); s.Status != tx.StatusStale {
			t.Fatalf("of the crowd's transactions number %d is %s", n, s.Status)
		}
	}
	if n := len(w.run.unsettled.sequences); n != 0 {
		t.Errorf("%d sequences are still unsettled", n)
	}
}

// More sequences stay unsettled than one head's reads include. Every other sequence is read in its
// turn, wherever its sender's address sorts.
func TestUnsettledTakeTurns(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	s := plain(0)
	s.Sender = chain.Address{0xff}
	s.Window.After = uint64(w.clock.now().Unix()) + 7*86400
	hash := w.submit("victim", s)
	w.feed()
	rival := s
	rival.Window = chain.Window{}
	w.mine(rivalOf(rival))
	stays := func() { // for each head anew: they never settle
		for n := range 3 * waitingMax {
			w.run.postpone([]chain.Sequence{{Chain: moderato, Sender: chain.Address{1, byte(n)}}})
		}
	}
	w.lens.failing = func(call string) error { // so that the victim's is postponed, too
		if call == "FindReceipt" {
			return errTrouble
		}
		return nil
	}
	stays()
	w.step()
	w.lens.failing = nil
	for range 2 {
		stays()
		w.mine()
		w.step()
	}
	if got := w.state(hash); got.Status != tx.StatusStale {
		t.Errorf("its transaction is %s", got.Status)
	}
}

// When a sequence finds no place, a round through the watched rows begins at once.
func TestUnsettledBeyondTheBound(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	place := func(n int) []chain.Sequence {
		return []chain.Sequence{{Chain: moderato, Sender: chain.Address{1, byte(n >> 8), byte(n)}}}
	}
	for n := range unsettledMax {
		w.run.postpone(place(n))
	}
	w.run.postpone(place(0)) // again
	if w.run.round.pause == 0 {
		t.Fatal("a round begins though all have their places")
	}
	w.run.postpone(place(unsettledMax))
	if n := len(w.run.unsettled.sequences); n != unsettledMax || w.run.round.pause != 0 {
		t.Errorf("%d sequences, and the next round begins after %s", n, w.run.round.pause)
	}
}

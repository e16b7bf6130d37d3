package watcher

import (
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// windowed returns a transaction that may be mined in blocks of [after, before), in seconds
// from now.
func (w *world) windowed(after, before uint64) chain.Signed {
	s, now := plain(0), uint64(w.clock.now().Unix())
	s.Window = chain.Window{After: now + after, Before: now + before}
	return s
}

// Our clock expires no transaction, even hours ahead of a halted chain. A block's time
// does, to the second, after a check for the receipt.
func TestExpiryIsByTheTimeOfABlock(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	s := w.windowed(0, 60)
	_, hash := w.accept(s)
	w.clock.pass(3 * time.Hour)
	for range 3 {
		w.step()
	}
	w.mineAt(s.Window.Before - 1)
	w.step()
	if got := w.state(hash); got.Status != tx.StatusQueued {
		t.Fatalf("it is %s before its time by the chain", got.Status)
	}
	b := w.mineAt(s.Window.Before)
	w.step()
	w.expect("accepted", "expired")
	if got := w.state(hash); got.Block != b || got.Sealed {
		t.Errorf("it rests on block %d, sealed %v", got.Block.Number, got.Sealed)
	}
}

// mineAt mines a block with this time.
func (w *world) mineAt(time uint64) chain.Block {
	w.t.Helper()
	b, err := w.chain.MineAt(time)
	must(w.t, err)
	return b
}

// The chain's clock may be ahead of ours: it expires transactions that have time left by
// our clock, and makes early ones due.
func TestChainAheadOfOurClock(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	short := w.windowed(0, 60)
	_, expires := w.accept(short)
	later := w.windowed(50, 5000)
	later.Sender = chain.Address{9}
	_, early := w.accept(later)
	if row := w.row(early); !row.NextAt.After(w.clock.now()) {
		t.Fatalf("due at %s, before it is eligible", row.NextAt)
	}
	w.mineAt(later.Window.After - 1)
	w.step()
	if row := w.row(early); !row.NextAt.After(w.clock.now()) {
		t.Errorf("due at %s, though the chain is not there yet", row.NextAt)
	}
	w.mineAt(later.Window.After)
	w.step()
	if row := w.row(early); row.NextAt.After(w.clock.now()) {
		t.Errorf("due at %s, though the chain is there", row.NextAt)
	}
	w.mineAt(short.Window.Before)
	w.step()
	w.expect("accepted", "accepted", "expired")
	if s := w.state(expires); s.Status != tx.StatusExpired {
		t.Error(s.Status)
	}
}

// A block dated 1970 between others, as a development node may make: no transaction expires
// or is revoked by it, and the next block counts as usual.
func TestTimeGoesBack(t *testing.T) {
	w := newWorld(t, 3)
	w.step()
	short := w.windowed(0, 60)
	_, expires := w.accept(short)
	good := plain(0)
	good.Sender = chain.Address{9}
	raw, mined := w.accept(good)
	w.mine(raw)
	w.step()
	w.feed()
	w.mineAt(5)
	w.step()
	w.feed()
	w.expect("accepted", "accepted", "mined")
	w.mineAt(short.Window.Before + 1)
	w.step()
	w.feed()
	w.mineAt(6) // no receipt was there; going back in time does not bring it back
	w.step()
	w.feed()
	if s := w.state(expires); s.Status != tx.StatusExpired {
		t.Errorf("it is %s", s.Status)
	}
	if s := w.state(mined); s.Status != tx.StatusExecuted || !s.Sealed {
		t.Errorf("%s, sealed %v", s.Status, s.Sealed)
	}
}

// A chain that makes no blocks costs a read of its head and its final block, and nothing is
// recorded, however long that lasts.
func TestChainStandsStill(t *testing.T) {
	w := newWorld(t, 3)
	w.step()
	_, hash := w.accept(w.windowed(0, 60))
	w.step()
	w.expect("accepted")
	for range 10 {
		w.clock.pass(24 * time.Hour)
		if asked := w.ask(); len(asked) != 1 || asked["eth_getBlockByNumber"] > 3 {
			t.Errorf("asked %v", asked)
		}
	}
	w.expect()
	if s := w.state(hash); s.Status != tx.StatusQueued {
		t.Error(s.Status)
	}
	w.mine()
	w.step()
	w.expect("expired")
}

// A receipt is looked for before a transaction expires, because a block that was never read
// may hold it.
func TestExpiryLooksForTheReceipt(t *testing.T) {
	w := newWorld(t, 2*gapMax)
	w.step()
	raw, hash := w.accept(w.windowed(0, 60))
	w.mine(raw)
	for range gapMax + 10 {
		w.mine()
	}
	w.step()
	w.expect("accepted", "mined")
	if s := w.state(hash); s.Status != tx.StatusExecuted {
		t.Error(s.Status)
	}
}

// More transactions of one client expire in one block than one query returns.
func TestManyExpireAtOnce(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	var hashes []chain.Hash
	for n := range rowsMax + 20 {
		s := w.windowed(0, 60)
		s.Sender = sender(n).Sender
		_, hash := w.accept(s)
		hashes = append(hashes, hash)
	}
	w.clock.pass(time.Hour)
	w.mine()
	for range (rowsMax+20)/settledMax + 1 {
		w.step()
		w.feed()
	}
	for _, hash := range hashes {
		if s := w.state(hash); s.Status != tx.StatusExpired {
			t.Fatalf("one is %s", s.Status)
		}
	}
}

// A transaction that its owner canceled is mined: it is executed, and stays marked as
// canceled, also after a reorg in between.
func TestCanceledAndMined(t *testing.T) {
	w := newWorld(t, 3)
	w.step()
	raw, hash := w.accept(plain(0))
	w.command(hash, tx.Cancel{Reason: "test"})
	w.feed()
	w.mine(raw)
	w.step()
	w.feed()
	if s := w.state(hash); s.Status != tx.StatusExecuted || !s.Canceled {
		t.Fatalf("%s, canceled %v", s.Status, s.Canceled)
	}
	must(t, w.chain.Reorg(1, false))
	w.mine()
	w.step()
	w.feed()
	if s, row := w.state(hash), w.row(hash); s.Status != tx.StatusCanceled || row.Phase != tx.Watched {
		t.Fatalf("un-mined: %s, %s", s.Status, row.Phase)
	}
	w.mine(raw)
	w.step()
	w.feed()
	w.mine()
	w.mine()
	w.step()
	w.feed()
	if s := w.state(hash); s.Status != tx.StatusExecuted || !s.Canceled || !s.Sealed {
		t.Errorf("%s, canceled %v, sealed %v", s.Status, s.Canceled, s.Sealed)
	}
}

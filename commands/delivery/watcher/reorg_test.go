package watcher

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
)

// forked returns a world whose newest blocks, the lowest of which holds a transaction, have
// just been replaced by as many others.
func forked(t *testing.T, depth int, reinject bool, others ...[]byte) (w *world, raw []byte, hash chain.Hash) {
	t.Helper()
	w = newWorld(t, 100)
	w.step()
	raw, hash = w.accept(plain(0))
	w.mine(raw)
	for range depth - 1 {
		w.mine()
	}
	w.step()
	w.feed()
	w.expect("accepted", "mined")
	must(t, w.chain.Reorg(depth, reinject, others...))
	w.step()
	w.expect() // a fork of equal height, seen once, is not recorded yet
	return w, raw, hash
}

// bury mines enough blocks to make all blocks so far final.
func (w *world) bury() {
	w.t.Helper()
	for range 100 {
		w.mine()
	}
	w.step()
	w.feed()
	w.step()
}

func depths(t *testing.T, f func(t *testing.T, depth int)) {
	for _, depth := range []int{1, 3, 64} {
		t.Run(fmt.Sprint(depth, " deep"), func(t *testing.T) { f(t, depth) })
	}
}

// A transaction whose block is reorged out, and that is not included again, is due again at
// once. If it is mined again, it is sealed in its new block.
func TestReorgThatLosesTheTransaction(t *testing.T) {
	depths(t, func(t *testing.T, depth int) {
		w, raw, hash := forked(t, depth, false)
		w.step()
		w.feed()
		w.expect("reorged")
		if row := w.row(hash); row.Phase != tx.Open || row.NextAt.After(w.clock.now()) {
			t.Errorf("it is %s, due at %s", row.Phase, row.NextAt)
		}
		w.truthful()
		again := w.mine(raw)
		w.step()
		w.feed()
		w.bury()
		w.expect("mined", "finalized")
		if s := w.state(hash); s.Status != tx.StatusExecuted || s.Block != again || !s.Sealed {
			t.Errorf("%s in block %d, sealed %v", s.Status, s.Block.Number, s.Sealed)
		}
	})
}

// A transaction that the new branch includes moves to its new block in one append: no
// reader sees it without a block.
func TestReorgThatMovesTheTransaction(t *testing.T) {
	depths(t, func(t *testing.T, depth int) {
		w, _, hash := forked(t, depth, true)
		again := w.mine()
		w.step()
		w.feed()
		w.expect("reorged+mined")
		if s := w.state(hash); s.Block != again {
			t.Errorf("it is in block %d, not %d", s.Block.Number, again.Number)
		}
		w.bury()
		w.expect("finalized")
	})
}

// Another transaction takes the nonce on the new branch: ours is stale, but only a final
// block seals that, and until then it may change.
func TestReorgWithAConflict(t *testing.T) {
	depths(t, func(t *testing.T, depth int) {
		w, raw, hash := forked(t, depth, false, rivalOf(plain(0)))
		w.step()
		w.feed()
		w.expect("reorged")
		if sight, err := w.Look(t.Context(), w.Node, w.state(hash)); err != nil || !sight.Over {
			t.Fatalf("%+v, %v", sight, err)
		}
		w.feed()
		w.step()
		w.expect("stale_by_nonce")
		if s := w.state(hash); s.Status != tx.StatusStale || s.Sealed {
			t.Errorf("%s, sealed %v", s.Status, s.Sealed)
		}
		must(t, w.chain.Reorg(depth, false, raw))
		back := w.mine()
		w.step()
		w.feed()
		if s := w.state(hash); s.Status != tx.StatusExecuted || s.Block.Number != back.Number-uint64(depth) {
			t.Errorf("after the branch with the rival left: %s in block %d", s.Status, s.Block.Number)
		}
		w.bury()
		if s := w.state(hash); s.Status != tx.StatusExecuted || !s.Sealed {
			t.Errorf("%s, sealed %v", s.Status, s.Sealed)
		}
	})
}

func TestStaleIsSealedByAFinalBlockOnly(t *testing.T) {
	w, _, hash := forked(t, 1, false, rivalOf(plain(0)))
	w.step()
	w.feed()
	_, err := w.Look(t.Context(), w.Node, w.state(hash))
	must(t, err)
	w.feed()
	w.expect("reorged", "stale_by_nonce")
	rests := w.state(hash).Block.Number
	for w.chain.Head().Number < rests+98 { // 100 confirmations count the block itself
		w.mine()
		w.step()
	}
	w.expect()
	w.mine()
	w.step()
	w.expect("finalized")
}

// The same transaction succeeds on one branch and fails on the other.
func TestReorgThatRevertsTheTransaction(t *testing.T) {
	for _, first := range []bool{false, true} {
		w := newWorld(t, 100)
		w.step()
		raw, hash := w.accept(plain(0))
		w.chain.Revert(hash, first)
		w.mine(raw)
		w.step()
		w.feed()
		w.chain.Revert(hash, !first)
		must(t, w.chain.Reorg(1, true))
		w.mine()
		w.step()
		w.expect("accepted", "mined", "reorged+mined")
		if s := w.state(hash); s.Status != tx.StatusExecuted || (s.Receipt.Status == 1) != first {
			t.Errorf("reverted %v at first: %s with status %d at last", first, s.Status, s.Receipt.Status)
		}
	}
}

// On the new branch the transaction's window has passed: it expires, and only a final block
// seals that.
func TestReorgPastTheWindow(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	short := plain(0)
	short.Window.Before = uint64(w.clock.now().Unix()) + 5
	raw, hash := w.accept(short)
	w.mine(raw)
	w.step()
	w.feed()
	w.clock.pass(10 * time.Second)
	must(t, w.chain.Reorg(1, true))
	w.mine()
	w.step() // revokes it; the board learns that it is open
	w.feed()
	w.mine()
	w.step()
	w.feed()
	w.expect("accepted", "mined", "reorged", "expired")
	if s := w.state(hash); s.Sealed {
		t.Error("sealed by a block that may leave")
	}
	w.bury()
	w.expect("finalized")
}

// A transaction of a final block leaves the chain: that is recorded once.
func TestReorgBelowFinal(t *testing.T) {
	w := newWorld(t, 3)
	w.step()
	raw, hash := w.accept(plain(0))
	w.mine(raw)
	w.step()
	w.feed()
	for range 4 {
		w.mine()
	}
	w.step()
	w.feed()
	w.expect("accepted", "mined", "finalized")
	must(t, w.chain.ReorgBelowFinal(5, false))
	w.mine()
	for range 3 {
		w.step()
	}
	w.expect("finality_violated")
	if s := w.state(hash); !s.Violated {
		t.Errorf("%+v", s)
	}
}

// More rows rest on a reorged block than one query returns.
func TestReorgOfACrowd(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	const crowd = rowsMax + 50
	var raws [][]byte
	var hashes []chain.Hash
	for n := range uint64(crowd) {
		raw, hash := w.accept(plain(n))
		raws, hashes = append(raws, raw), append(hashes, hash)
	}
	w.mine(raws...)
	w.step()
	w.feed()
	must(t, w.chain.Reorg(1, false))
	w.mine()
	w.step()
	for _, hash := range hashes {
		if s := w.state(hash); s.Status != tx.StatusBroadcasting {
			t.Fatalf("one is %s after one step", s.Status)
		}
	}
}

// A node that loses its newest blocks without replacing them proves nothing. Replacing
// blocks do, once there are as many.
func TestRollback(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	raw, hash := w.accept(plain(0))
	w.mine(raw)
	w.mine()
	w.mine()
	w.step()
	w.feed()
	w.expect("accepted", "mined")
	must(t, w.chain.Rollback(3))
	for range 3 {
		w.step()
		w.mine()
	}
	w.step()
	w.expect()
	if s := w.state(hash); s.Status != tx.StatusExecuted {
		t.Error(s.Status)
	}
	w.mine()
	w.step()
	w.expect("reorged")
	w.truthful()
}

// A database that watched one chain is pointed at another with the same id, for example
// after a reset of a development chain. No transaction is revoked before a block replaces
// one of the old chain.
func TestAnotherGenesis(t *testing.T) {
	w := newWorld(t, 100)
	for range 3 {
		w.mine()
	}
	w.step()
	raw, hash := w.accept(plain(0))
	w.mine(raw)
	w.step()
	w.feed()
	w.expect("accepted", "mined")

	w.clock.pass(time.Hour) // so that its genesis is another
	w.chain = chaintest.New(chaintest.Options{Chain: moderato, Decode: chaintest.DecodePlain, Now: w.clock.now})
	t.Cleanup(w.chain.Close)
	server := httptest.NewServer(w.chain.Node("new"))
	t.Cleanup(server.Close)
	pool, err := rpc.Open(t.Context(), rpc.Config{Chain: moderato, Confirmations: 100, Probe: time.Hour,
		Endpoints: []rpc.Endpoint{{Name: "new", URL: server.URL}}})
	must(t, err)
	t.Cleanup(pool.Close)
	w.pool, w.lens.Node = pool, pool.Reader()
	w.restart()
	for w.chain.Head().Number < 3 {
		if err := w.run.step(t.Context()); err == nil {
			t.Error("no error from a chain that cannot be followed")
		}
		w.expect()
		w.mine()
	}
	for w.chain.Head().Number < 7 { // past the last block of the old one, which is 5
		w.mine()
		w.run.step(t.Context()) //nolint:errcheck // until then it cannot be followed
	}
	w.expect("reorged")
	w.truthful()
	again, _ := w.accept(plain(1))
	w.mine(raw, again)
	w.step()
	w.expect("accepted", "mined", "mined")
	if s := w.state(hash); s.Status != tx.StatusExecuted {
		t.Error(s.Status)
	}
}

// A suspended process brings a receipt of a block that was reorged since, and whose
// transaction was mined in another: the old receipt does not overwrite the new one.
func TestOldReceiptIsNoNews(t *testing.T) {
	w, raw, hash := forked(t, 2, false)
	old := w.state(hash).Receipt
	w.mine(raw)
	w.step()
	w.feed()
	now := w.state(hash)
	if old == nil || now.Status != tx.StatusExecuted || now.Block.Hash == old.Block.Hash {
		t.Fatalf("%+v, after %+v", now, old)
	}
	w.log.appends = nil
	must(t, w.Watcher.command(t.Context(), hash, tx.SeeReceipt{Receipt: *old, At: w.clock.now()}))
	w.expect()
	if after := w.state(hash); after.Block.Hash != now.Block.Hash {
		t.Errorf("in block %s, it was in %s", after.Block.Hash, now.Block.Hash)
	}
}

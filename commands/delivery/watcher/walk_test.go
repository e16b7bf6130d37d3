package watcher

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// ask runs a step and counts its calls, by method, at all nodes.
func (w *world) ask() map[string]int {
	w.t.Helper()
	before := map[string]int{}
	for _, n := range w.nodes {
		for method, count := range n.Calls() {
			before[method] += count
		}
	}
	w.step()
	asked := map[string]int{}
	for _, n := range w.nodes {
		for method, count := range n.Calls() {
			if asked[method] += count; before[method] > 0 {
				asked[method] -= before[method]
				before[method] = 0
			}
		}
	}
	delete(asked, "eth_blockNumber") // the pool's own health checks
	for method, count := range asked {
		if count == 0 {
			delete(asked, method)
		}
	}
	return asked
}

// sender returns a transaction with a nonce sequence of its own.
func sender(n int) chain.Signed {
	s := plain(0)
	s.Sender = chain.Address{0xc0, byte(n >> 8), byte(n)}
	return s
}

// The number of calls per block does not depend on the number of open transactions, and
// hardly on the number of mined ones.
func TestCallsPerBlock(t *testing.T) {
	w := newWorld(t, 10)
	var raws [][]byte
	open := func(n int) {
		for range n {
			raw, _ := w.accept(sender(len(raws)))
			raws = append(raws, raw)
		}
	}
	w.step()
	w.mine()
	none := w.ask()
	open(500)
	w.mine()
	if diff := cmp.Diff(none, w.ask()); diff != "" {
		t.Errorf("a block that mines none of 500 open ones, beside one with none open: %s", diff)
	}
	for _, mined := range []int{2, 100, 300} {
		var now [][]byte
		now, raws = raws[:mined], raws[mined:]
		open(mined)
		w.mine(now...)
		asked := w.ask()
		if n := asked["eth_getBlockReceipts"]; n != 2 { // the node that is read, and a confirming node
			t.Errorf("%d mined: asked for the block's receipts %d times", mined, n)
		}
		delete(asked, "eth_getBlockReceipts")
		if diff := cmp.Diff(none, asked); diff != "" {
			t.Errorf("%d mined: %s", mined, diff)
		}
		w.feed()
	}
	if asked := w.ask(); asked["eth_getBlockByHash"] != 0 || asked["eth_getBlockByNumber"] > 3 {
		t.Errorf("without a new block: %v", asked)
	}
}

// A thousand blocks at once are each read once. All our mined transactions are found,
// canceled ones included.
func TestBurst(t *testing.T) {
	w := newWorld(t, 2*gapMax)
	w.step()
	mined := map[chain.Hash]chain.Block{}
	var canceled chain.Hash
	for n := range 1000 {
		if n%100 != 50 {
			w.mine()
			continue
		}
		raw, hash := w.accept(sender(n))
		if n == 550 {
			canceled = hash
			w.command(hash, tx.Cancel{Reason: "test"})
			w.feed()
		}
		mined[hash] = w.mine(raw)
	}
	asked := w.ask()
	if n := asked["eth_getBlockByHash"] + asked["eth_getBlockByNumber"]; n > 1000+32 {
		t.Errorf("%d blocks asked for", n)
	}
	for hash, b := range mined {
		if s := w.state(hash); s.Status != tx.StatusExecuted || s.Block != b || s.Canceled != (hash == canceled) {
			t.Errorf("%s in block %d, not %d; canceled %v", s.Status, s.Block.Number, b.Number, s.Canceled)
		}
	}
	w.truthful()
}

// A process that ends during a walk loses nothing: the next continues, and records nothing
// twice.
func TestRestartInMidWalk(t *testing.T) {
	w := newWorld(t, 2*gapMax)
	w.step()
	var hashes []chain.Hash
	var raws [][]byte
	var want []string
	for n := range 40 {
		raw, hash := w.accept(sender(n))
		raws, hashes, want = append(raws, raw), append(hashes, hash), append(want, "mined")
	}
	w.log.appends = nil
	for _, raw := range raws {
		w.mine(raw)
		for range 20 {
			w.mine()
		}
	}
	for starts := 1; ; starts++ {
		left := 250 // blocks until the process ends
		w.lens.failing = func(call string) error {
			if call == "BlockByHash" {
				left--
			}
			if left < 0 {
				return errTrouble
			}
			return nil
		}
		w.restart()
		err := w.run.step(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, errTrouble) || starts > 10 {
			t.Fatalf("start %d: %v", starts, err)
		}
	}
	for _, hash := range hashes {
		if s := w.state(hash); s.Status != tx.StatusExecuted {
			t.Errorf("one is %s", s.Status)
		}
	}
	w.expect(want...)
	w.truthful()
}

// withoutReceipts is a node that does not return the receipts of one block the first time.
type withoutReceipts struct {
	Node
	of  chain.Block
	was atomic.Bool
}

func (n *withoutReceipts) Receipts(ctx context.Context, b chain.Block, hashes []chain.Hash) (map[chain.Hash]chain.Receipt, error) {
	if b.Hash == n.of.Hash && !n.was.Swap(true) {
		return nil, errTrouble
	}
	return n.Node.Receipts(ctx, b, hashes)
}

// The receipts of one block in the middle cannot be read: the blocks below are recorded and
// not read again, this one and those above are read in the next step.
func TestBlockThatCannotBeRead(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	raw, hash := w.accept(sender(1))
	w.mine(raw)
	bad, badHash := w.accept(sender(2))
	at := w.mine(bad)
	above, aboveHash := w.accept(sender(3))
	w.mine(above)
	w.Node = &withoutReceipts{Node: w.lens, of: at}
	if err := w.run.step(t.Context()); !errors.Is(err, errTrouble) {
		t.Fatal(err)
	}
	if tip := w.run.tip(); tip.Number != at.Number-1 {
		t.Errorf("it has come to block %d", tip.Number)
	}
	if s := w.state(hash); s.Status != tx.StatusExecuted {
		t.Error("the one below is", s.Status)
	}
	w.feed()
	w.log.appends = nil
	w.step()
	w.expect("mined") // the one above was recorded together with the one below
	for _, hash := range []chain.Hash{badHash, aboveHash} {
		if s := w.state(hash); s.Status != tx.StatusExecuted {
			t.Error(s.Status)
		}
	}
}

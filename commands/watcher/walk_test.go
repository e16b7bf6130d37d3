package watcher

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/tx"
)

// ask takes a step and counts the calls it makes, by method, at all nodes.
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
	delete(asked, "eth_blockNumber") // the pool's, who looks after its nodes at its own pace
	for method, count := range asked {
		if count == 0 {
			delete(asked, method)
		}
	}
	return asked
}

// sender has a nonce sequence of its own.
func sender(n int) chain.Signed {
	s := plain(0)
	s.Sender = chain.Address{0xc0, byte(n >> 8), byte(n)}
	return s
}

// What a block costs in calls does not depend on how many transactions are open, and
// hardly on how many it mines.
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
		if n := asked["eth_getBlockReceipts"]; n != 2 { // the node that is read from, and one that bears it out
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

// A thousand blocks at once are read, each once; what they mined of ours is
// found wherever it is, the canceled among it.
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

// A process that ends in the midst of a walk has lost nothing: the next goes on, and
// tells nothing twice.
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

// The receipts of one block in the midst cannot be read: the blocks below are told and
// not asked for again, those above wait for it.
func TestBlockThatCannotBeRead(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	raw, hash := w.accept(sender(1))
	w.mine(raw)
	bad, badHash := w.accept(sender(2))
	at := w.mine(bad)
	above, aboveHash := w.accept(sender(3))
	w.mine(above)
	reads := 0
	w.lens.failing = func(call string) error {
		if call == "Receipts" {
			if reads++; reads == 2 {
				return errTrouble
			}
		}
		return nil
	}
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
	w.expect("mined", "mined")
	for _, hash := range []chain.Hash{badHash, aboveHash} {
		if s := w.state(hash); s.Status != tx.StatusExecuted {
			t.Error(s.Status)
		}
	}
}

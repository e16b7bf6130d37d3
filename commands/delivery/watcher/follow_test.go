package watcher

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

func TestMinedAndSealed(t *testing.T) {
	for name, confirmations := range map[string]uint64{"by tag": 0, "by confirmations": 3} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, confirmations)
			raw, hash := w.accept(plain(0))
			w.step()
			w.expect("accepted")
			block := w.mine(raw)
			w.chain.Revert(hash, false)
			w.step()
			w.expect("mined")
			if s := w.state(hash); s.Status != tx.StatusExecuted || s.Block != block || s.Sealed || s.Receipt.Status != 1 {
				t.Errorf("%+v", s)
			}
			w.feed()
			w.step()
			w.expect()
			depth := max(confirmations, 2) - 1
			for range depth - 1 {
				w.mine()
				w.step()
			}
			w.expect()
			final := w.mine()
			w.step()
			w.expect("finalized")
			w.feed()
			w.step()
			w.expect()
			s, row := w.state(hash), w.row(hash)
			if !s.Sealed || row.Phase != tx.Sealed || row.Block.Hash != block.Hash || final.Number != block.Number+depth {
				t.Errorf("sealed %v, row %+v", s.Sealed, row)
			}
		})
	}
}

func TestReverted(t *testing.T) {
	w := newWorld(t, 3)
	raw, hash := w.accept(plain(0))
	w.step()
	w.chain.Revert(hash, true)
	w.mine(raw)
	w.step()
	w.expect("accepted", "mined")
	if s := w.state(hash); s.Status != tx.StatusExecuted || s.Receipt.Status != 0 {
		t.Errorf("%s with status %d", s.Status, s.Receipt.Status)
	}
}

// Several blocks since the last step are each read once.
func TestCatchesUp(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	var hashes []chain.Hash
	var blocks []chain.Block
	for n := range uint64(10) {
		raw, hash := w.accept(plain(n))
		hashes, blocks = append(hashes, hash), append(blocks, w.mine(raw))
	}
	w.step()
	w.step()
	for i, hash := range hashes {
		if s := w.state(hash); s.Block != blocks[i] {
			t.Errorf("%d is %s in block %d, not %d", i, s.Status, s.Block.Number, blocks[i].Number)
		}
	}
	if n := len(w.log.appends); n != 20 {
		t.Errorf("%d appends for 10 accepted and 10 mined: %v", n, w.log.appends)
	}
	w.truthful()
}

// A mined transaction costs two calls for its receipt: one to the node that is read, one to
// another that confirms it. Its used nonce costs no call.
func TestCallsForOneMined(t *testing.T) {
	w := newWorld(t, 100)
	raw, _ := w.accept(plain(0))
	w.step()
	w.mine(raw)
	reader, other := w.reader()
	before, beforeOther := reader.Calls(), other.Calls()
	w.step()
	w.expect("accepted", "mined")
	if n := reader.Calls()["eth_getTransactionReceipt"] - before["eth_getTransactionReceipt"]; n != 1 {
		t.Errorf("asked the node that is read from %d times for a receipt", n)
	}
	if n := other.Calls()["eth_getTransactionReceipt"] - beforeOther["eth_getTransactionReceipt"]; n != 1 {
		t.Errorf("asked the other node %d times for a receipt", n)
	}
}

// A block whose receipts could not be read is read again.
func TestReceiptsFail(t *testing.T) {
	w := newWorld(t, 100)
	raw, hash := w.accept(plain(0))
	w.step()
	w.mine(raw)
	w.mine()
	w.lens.failing = func(string) error { return errTrouble }
	if err := w.run.step(t.Context()); err == nil {
		t.Error("no error")
	}
	w.expect("accepted")
	w.lens.failing = nil
	w.step()
	w.expect("mined")
	if w.state(hash).Status != tx.StatusExecuted {
		t.Error(w.state(hash).Status)
	}
	w.truthful()
}

// The next step does the work that a step had to leave after reading the blocks. The
// remembered blocks are canonical, also without a new head.
func TestTipFails(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	w.mine()
	w.step()
	_, hash := w.accept(chain.Signed{Chain: moderato, Sender: chain.Address{1}, Window: chain.Window{Before: uint64(w.clock.now().Unix()) + 1}})
	must(t, w.chain.Reorg(1, false))
	w.mine()
	w.board.failing = func(string) error { return errTrouble }
	if err := w.run.step(t.Context()); err == nil {
		t.Error("no error")
	}
	w.board.failing = nil
	w.step()
	if s := w.state(hash).Status; s != tx.StatusExpired {
		t.Errorf("%s, want expired", s)
	}
	w.mine()
	w.step()
	w.truthful()
}

// After a long absence the gap is skipped. Transactions mined in it are found by the look
// at each open transaction, and later ones are watched as usual.
func TestLongAbsence(t *testing.T) {
	w := newWorld(t, 2*gapMax)
	w.step()
	missed, missedHash := w.accept(plain(0))
	another := plain(0)
	another.Sender = chain.Address{0xb0}
	later, laterHash := w.accept(another)
	w.mine(missed)
	for range gapMax + 20 {
		w.mine()
	}
	w.mine(later)
	w.step()
	w.expect("accepted", "accepted", "mined")
	if w.state(laterHash).Status != tx.StatusExecuted {
		t.Error(w.state(laterHash).Status)
	}
	if sight, err := w.Look(t.Context(), w.Node, w.state(missedHash)); err != nil || !sight.Over || w.state(missedHash).Status != tx.StatusExecuted {
		t.Errorf("%+v, %v, %s", sight, err, w.state(missedHash).Status)
	}
	w.truthful()
	w.mine()
	w.step()
	w.truthful()
}

// Blocks below a gap that were reorged during the absence are neither remembered nor
// believed.
func TestReorgBelowALongAbsence(t *testing.T) {
	w := newWorld(t, 2*gapMax)
	w.mine()
	w.mine()
	w.step()
	raw, hash := w.accept(plain(0))
	w.mine(raw)
	w.mine()
	w.step()
	w.feed()
	w.expect("accepted", "mined")
	w.restart()
	must(t, w.chain.Reorg(2, false))
	for range gapMax + 20 {
		w.mine()
	}
	w.step()
	w.expect("reorged")
	if s := w.state(hash).Status; s != tx.StatusBroadcasting {
		t.Error(s)
	}
	w.truthful()
}

// A failed step is retried at the next poll, and a closed channel of heads causes no busy
// loop.
func TestRunDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		steps := 0
		deaf := &deaf{lens: lens{head: &chain.Block{}, failing: func(string) error {
			if steps++; steps > 100 {
				stop() // it spins: time stands still in here
			}
			return errTrouble
		}}}
		db, err := embedded.Open("", embedded.Options{})
		must(t, err)
		defer func() { must(t, db.Close()) }()
		w := &Watcher{Chain: moderato, Node: deaf, Board: db.Work(), Poll: time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
		if err := w.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if steps < 9 || steps > 12 {
			t.Errorf("%d steps in ten seconds with a poll of one", steps)
		}
	})
}

// deaf is a node whose heads have ended.
type deaf struct{ lens }

func (d *deaf) Heads(context.Context) <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}

// Run as a whole: heads arrive by themselves, and Moved is called for each.
func TestRun(t *testing.T) {
	w := newWorld(t, 2)
	w.Poll = 10 * time.Millisecond
	moved := make(chan chain.Block, 1000)
	w.Moved = func(head, _ chain.Block) { moved <- head }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	raw, hash := w.accept(plain(0))
	var seen []uint64
	reach := func(b chain.Block) {
		t.Helper()
		for {
			select {
			case head := <-moved:
				if seen = append(seen, head.Number); head == b {
					return
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("block %d is not reached: %v", b.Number, seen)
			}
		}
	}
	reach(w.chain.Head())
	reach(w.mine(raw))
	w.feed()
	reach(w.mine())
	reach(w.mine())
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !slices.IsSorted(seen) || !w.state(hash).Sealed {
		t.Errorf("seen %v, sealed %v", seen, w.state(hash).Sealed)
	}
}

// A foreign transaction uses the nonce of a transaction scheduled for much later: its owner
// learns of it when the block is read. While none does, no calls are made.
func TestStrangersUseNonces(t *testing.T) {
	w := newWorld(t, 0)
	w.mine()
	w.step()
	var hashes []chain.Hash
	for nonce := range uint64(3) {
		s := plain(nonce)
		s.Window.After = uint64(w.clock.now().Unix()) + 1_000_000
		_, hash := w.accept(s)
		hashes = append(hashes, hash)
	}
	w.ask()
	w.mine()
	w.step()
	if asked := w.ask(); asked["eth_getTransactionCount"]+asked["eth_call"]+asked["eth_getTransactionReceipt"] != 0 {
		t.Errorf("asked for what is not due: %v", asked)
	}
	for nonce := range uint64(2) {
		w.mine(chaintest.EncodePlain(plain(nonce))) // without the window: another transaction
		w.step()
		for n, hash := range hashes {
			want := tx.StatusQueued
			if uint64(n) <= nonce {
				want = tx.StatusStale
			}
			if got := w.state(hash).Status; got != want {
				t.Errorf("nonce %d is %s after %d was used, want %s", n, got, nonce, want)
			}
		}
	}
}

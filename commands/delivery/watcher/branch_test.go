package watcher

import (
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// foreign makes a node that is not read return a receipt in a block of another branch.
func (w *world) foreign(at chain.Block) {
	at.Hash = chain.Keccak(at.Hash[:], []byte("elsewhere"))
	w.lens.receipt = &chain.Receipt{Block: at, Status: 1}
}

// A receipt in a block outside the followed chain executes no transaction, and keeps none
// from being stale, whichever path finds it.
func TestReceiptOnAnotherBranch(t *testing.T) {
	for name, find := range map[string]func(w *world, hash chain.Hash){
		"by a look": func(w *world, hash chain.Hash) {
			_, err := w.Look(w.t.Context(), w.Node, w.state(hash))
			must(w.t, err)
		},
		"by a rival": func(w *world, _ chain.Hash) { w.step() },
		"by its owner": func(w *world, hash chain.Hash) {
			_, err := w.Stale(w.t.Context(), w.Node, hash, eventlog.Meta{})
			must(w.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			w.step()
			_, hash := w.accept(plain(0))
			rival := plain(0)
			rival.Gas++
			raw, _ := w.accept(rival)
			w.foreign(w.mine(raw))
			find(w, hash)
			w.feed()
			if s := w.state(hash); s.Status != tx.StatusStale {
				t.Fatalf("it is %s", s.Status)
			}
			for range 5 { // and when it is sealed
				w.mine()
				w.step()
				w.feed()
			}
			if s := w.state(hash); s.Status != tx.StatusStale || !s.Sealed {
				t.Errorf("it is %s, sealed %v", s.Status, s.Sealed)
			}
		})
	}
}

// A receipt in a block that the read node does not have yet is ignored: the next look
// decides.
func TestReceiptAhead(t *testing.T) {
	w := newWorld(t, 3)
	w.step()
	_, hash := w.accept(plain(0))
	head := w.mine(rivalOf(plain(0)))
	w.foreign(chain.Block{Number: head.Number + 1, Hash: head.Hash})
	if _, err := w.Look(t.Context(), w.Node, w.state(hash)); err == nil {
		t.Error("a verdict on a block that nobody has shown")
	}
	w.expect("accepted")
}

// A rival that cannot be settled, because no node returns its receipt, delays neither the
// blocks above nor their transactions. It is settled later.
func TestRivalThatCannotBeSettled(t *testing.T) {
	w := newWorld(t, 100)
	w.step()
	_, hash := w.accept(plain(0))
	rival := plain(0)
	rival.Gas++
	raw, rivalHash := w.accept(rival)
	next, nextHash := w.accept(plain(1))
	w.mine(raw)
	w.lens.failing = func(call string) error {
		if call == "FindReceipt" {
			return errTrouble
		}
		return nil
	}
	try := func() {
		if err := w.run.step(t.Context()); err != nil && !errors.Is(err, errTrouble) {
			t.Error(err)
		}
		w.feed()
	}
	try()
	w.mine(next)
	try()
	for name, hash := range map[string]chain.Hash{"the rival": rivalHash, "the next": nextHash} {
		if s := w.state(hash); s.Status != tx.StatusExecuted {
			t.Errorf("%s is %s", name, s.Status)
		}
	}
	if s := w.state(hash); s.Status != tx.StatusQueued {
		t.Errorf("it is %s, though nobody could tell", s.Status)
	}
	w.lens.failing = nil
	w.step()
	w.feed()
	if s := w.state(hash); s.Status != tx.StatusStale {
		t.Errorf("it is %s once its receipt can be asked for", s.Status)
	}
	if len(w.run.unsettled.sequences) != 0 {
		t.Errorf("still unsettled: %v", w.run.unsettled.sequences)
	}
}

// stuck puts rows on the board that no step can seal, because the log does not know them:
// more than one query returns, resting on this block.
func (w *world) stuck(b chain.Block) {
	w.t.Helper()
	var changes []tx.Change
	for n := range rowsMax + 100 {
		hash := chain.Hash{0, byte(n >> 8), byte(n), 1}
		row := tx.Work{Sender: chain.Address(hash[:20]), Phase: tx.Open, NextAt: w.clock.now()}
		changes = append(changes, tx.Change{Chain: moderato, Hash: hash, Open: &row},
			tx.Change{Chain: moderato, Hash: hash, Announce: &tx.Verdict{Status: tx.StatusExecuted, Block: b}})
	}
	at, err := w.db.Work().Checkpoint(w.t.Context(), scheduler.Reader)
	must(w.t, err)
	must(w.t, w.db.Work().Apply(w.t.Context(), scheduler.Reader, at, at, changes))
}

// Rows that cannot be sealed block no others, in lower blocks or in their own.
func TestSealingTakesTurns(t *testing.T) {
	w := newWorld(t, 3)
	w.step()
	below := w.mine()
	raw, hash := w.accept(plain(0))
	same := w.mine(raw)
	w.step()
	w.feed()
	w.stuck(below)
	w.stuck(same)
	w.mine()
	w.mine()
	for range 4 {
		w.step()
	}
	if s := w.state(hash); !s.Sealed {
		t.Errorf("it is %s and not sealed", s.Status)
	}
	w.feed()
	raw, hash = w.accept(plain(1)) // and so in the next turn
	w.mine(raw)
	w.step()
	w.feed()
	for range 2 {
		w.mine()
	}
	for range 4 {
		w.step()
	}
	if s := w.state(hash); !s.Sealed {
		t.Errorf("the next is %s and not sealed", s.Status)
	}
}

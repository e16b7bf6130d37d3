package tx_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

var foldNow = time.Unix(1_700_000_000, 0)

func foldRow(n byte, nonce uint64) tx.Row {
	return tx.Row{Work: tx.Work{Chain: 1, Hash: chain.Hash{n}, Sender: chain.Address{1}, Nonce: nonce, Phase: tx.Open, NextAt: foldNow}}
}

// An empty change is a defect in the caller, whether or not the row exists.
func TestFoldOfNothingPanics(t *testing.T) {
	for _, stored := range []bool{false, true} {
		f := tx.NewFold(tx.Clock{Now: foldNow})
		if stored {
			f.Load(foldRow(1, 0))
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("stored %v: a change of nothing did not panic", stored)
				}
			}()
			f.Apply(tx.Change{Chain: 1, Hash: chain.Hash{1}})
		}()
	}
}

// A repeated verdict writes nothing and wakes no rows.
func TestFoldOfRepeatedVerdict(t *testing.T) {
	row := foldRow(1, 0)
	row.Phase, row.Verdict, row.Block = tx.Announced, tx.StatusExecuted, chain.Block{Number: 7, Hash: chain.Hash{7}}
	f := tx.NewFold(tx.Clock{Now: foldNow})
	f.Load(row)
	f.Apply(tx.Change{Chain: 1, Hash: row.Hash, Announce: &tx.Verdict{Status: tx.StatusExecuted, Block: chain.Block{Number: 7, Hash: chain.Hash{7}, Time: 99}}})
	if got := f.Folded(); len(got.Update)+len(got.Woken)+len(got.Shifted) != 0 {
		t.Errorf("the same verdict again: %+v", got)
	}
}

// A row that leaves phase open loses the fields of that phase. A row that is opened and closed in
// the same fold is never written.
func TestFoldEnds(t *testing.T) {
	row := foldRow(1, 3)
	row.Holder, row.Until, row.Parked, row.WaitNonce, row.HeldSince = "a", foldNow, true, 3, foldNow
	f := tx.NewFold(tx.Clock{Now: foldNow})
	f.Load(row)
	f.Apply(tx.Change{Chain: 1, Hash: row.Hash, Watch: true})
	opened := foldRow(2, 4).Work
	f.Apply(tx.Change{Chain: 1, Hash: opened.Hash, Open: &opened})
	f.Apply(tx.Change{Chain: 1, Hash: opened.Hash, Close: true})
	got := f.Folded()
	want := foldRow(1, 3)
	want.Phase = tx.Watched
	if len(got.Update) != 1 || !cmp.Equal(got.Update[0], want) || len(got.Insert)+len(got.Drop) != 0 {
		t.Errorf("folded %+v", got)
	}
}

func TestEdge(t *testing.T) {
	nonces := []uint64{4, 5, 5, 9}
	for window, want := range map[int]tx.Edge{1: {Nonce: 4, Full: true}, 2: {Nonce: 5, Full: true}, 3: {Nonce: 5, Full: true}, 4: {Nonce: 9, Full: true}, 5: {}} {
		if got := tx.EdgeOf(nonces, window); got != want {
			t.Errorf("window %d: %+v", window, got)
		}
	}
	edge := tx.EdgeOf(nonces, 2)
	if edge.Parks(5) || !edge.Parks(6) || (tx.Edge{}).Parks(1<<64-1) {
		t.Error("an edge parks what is beyond it, and only that")
	}
}

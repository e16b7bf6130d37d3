package worker

import (
	"slices"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// Announced confirmations do not stay on a fork although a later block is final: until
// delivery has seen the final block's ancestors, the announced blocks may not be among
// them.
func TestFinalBlockOfAnotherFork(t *testing.T) {
	w := newWorld(t)
	w.settings.Confirmations = 2
	a := w.worker()
	id := w.ask(w.request(1))[0]
	w.until(a, "two blocks are told", func() bool { return len(w.intent(id).Told) == 2 })
	told := w.intent(id).Told
	w.board, _ = w.Blocks(t.Context(), moderato)
	if head := w.chain.Head(); head.Hash != told[1].Hash {
		t.Fatalf("the head is %d, %d was told", head.Number, told[1].Number)
	}
	must(t, w.chain.Reorg(1, true))
	for range 3 { // until the replacing blocks are final
		w.block()
	}
	must(t, w.turns(a, 2))
	if w.state().Open() == 0 {
		t.Error("the nonce is closed, and what was told is not so")
	}
	w.board = nil
	w.until(a, "it has come out", w.ended(intent.StatusCompleted, id))
	if now := w.intent(id).Told; slices.Equal(now, told) {
		t.Errorf("%+v is told as if it were so", now)
	}
	w.judge()
}

// The blocks that delivery remembers may be lost and begin again above the announced
// blocks. That alone does not make these final: a fork below is found by asking nodes.
func TestBlocksBegunAnew(t *testing.T) {
	for name, forked := range map[string]bool{"a fork": true, "no fork": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settings.Confirmations = 2
			a := w.worker()
			id := w.ask(w.request(1))[0]
			w.until(a, "two blocks are told", func() bool { return len(w.intent(id).Told) == 2 })
			told := w.intent(id).Told
			if head := w.chain.Head(); head.Hash != told[1].Hash {
				t.Fatalf("the head is %d, %d was told", head.Number, told[1].Number)
			}
			if forked {
				must(t, w.chain.Reorg(1, true))
			}
			w.board = []chain.Block{}
			for w.chain.Final().Number < told[0].Number {
				w.block()
				must(t, w.turns(a, 1))
			}
			if w.state().Open() == 0 {
				t.Error("the nonce is closed while no block is known")
			}
			w.board = []chain.Block{w.chain.Head()}
			must(t, w.turns(a, 2))
			if w.state().Open() == 0 {
				t.Error("the nonce is closed, and of what was told only the first block is final")
			}
			for w.chain.Final().Number < told[1].Number {
				w.block()
			}
			w.board = []chain.Block{w.chain.Head()}
			w.until(a, "it has come out", w.ended(intent.StatusCompleted, id))
			if now := w.intent(id).Told; slices.Equal(now, told) == forked {
				t.Errorf("%+v is told, and was", now)
			}
			w.judge()
		})
	}
}

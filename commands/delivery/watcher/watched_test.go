package watcher

import (
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// canceled accepts transactions that their owner cancels at once.
func (w *world) canceled(from, to int) (raws [][]byte, hashes []chain.Hash) {
	w.t.Helper()
	for n := from; n < to; n++ {
		raw, hash := w.accept(sender(n))
		w.command(hash, tx.Cancel{Reason: "test"})
		raws, hashes = append(raws, raw), append(hashes, hash)
	}
	w.feed()
	return raws, hashes
}

// every returns one in n of these: the mined ones.
func every[T any](n int, all []T) (some []T) {
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

// executed checks that these canceled transactions are executed.
func (w *world) executed(hashes []chain.Hash) {
	w.t.Helper()
	for i, hash := range hashes {
		if s := w.state(hash); s.Status != tx.StatusExecuted || !s.Canceled {
			w.t.Errorf("number %d is %s", i, s.Status)
		}
	}
}

// A canceled transaction is not sent, so no attempt asks about it. If it was mined in
// blocks that are skipped after a long absence, it is still found.
func TestCanceledAndMinedInAGap(t *testing.T) {
	w := newWorld(t, 0)
	w.step()
	const mined = 10 // one in ten
	raws, hashes := w.canceled(0, watchedMax+2*mined)
	w.mine(every(mined, raws)...)
	for range gapMax {
		w.mine()
	}
	w.step()
	if w.run.blocks[0].Number+gapMax > w.run.tip().Number+1 {
		t.Fatalf("no block was skipped: %d blocks", len(w.run.blocks))
	}
	w.feed()
	w.mine()
	w.step()
	w.executed(every(mined, hashes))
	if s := w.state(hashes[1]); s.Status != tx.StatusCanceled {
		t.Errorf("what was not mined is %s", s.Status)
	}
}

// The board may get a row after the block that holds its transaction was read, for example
// in a rebuild from the log. A new process checks at once. A running process checks again
// soon, and finally once a day.
func TestCanceledBeforeTheBoardKnew(t *testing.T) {
	for name, pass := range map[string]func(w *world){
		"another process": (*world).restart,
		"a moment":        func(w *world) { w.clock.pass(watchedFirst) },
		"a day":           func(w *world) { w.clock.pass(watchedAgain) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0)
			raws, hashes := w.canceled(0, 1)
			must(t, w.db.Work().Apply(t.Context(), "test", 0, 1, []tx.Change{{Chain: moderato, Hash: hashes[0], Close: true}}))
			w.mine(raws...)
			w.step()
			s := sender(0)
			row := tx.Work{Sender: s.Sender, NonceKey: s.NonceKey, Nonce: s.Nonce, Phase: tx.Watched, NextAt: w.clock.now()}
			must(t, w.db.Work().Apply(t.Context(), "test", 1, 2, []tx.Change{{Chain: moderato, Hash: hashes[0], Open: &row}}))
			w.mine()
			w.step()
			if s := w.state(hashes[0]); s.Status != tx.StatusCanceled {
				t.Fatalf("it is %s before anybody could know", s.Status)
			}
			pass(w)
			w.mine()
			w.step()
			w.executed(hashes)
		})
	}
}

// If nodes disagree on one page, the round continues with the other pages, and asks about
// the page again.
func TestTroubleInARound(t *testing.T) {
	w := newWorld(t, 0)
	const mined = 16 // one in sixteen
	raws, hashes := w.canceled(0, 2*watchedMax)
	w.mine(every(mined, raws)...)
	w.mine() // watching begins here
	asked := 0
	w.lens.failing = func(call string) error {
		if call == "Nonces" {
			if asked++; asked == 1 {
				return errTrouble
			}
		}
		return nil
	}
	if err := w.run.step(t.Context()); !errors.Is(err, errTrouble) {
		t.Fatal(err)
	}
	for range 3 {
		w.mine()
		w.step()
		w.feed()
	}
	w.executed(every(mined, hashes))
}

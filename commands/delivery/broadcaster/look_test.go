package broadcaster_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/commands/delivery/broadcaster"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// Before a repeat the chain is asked; its result is recorded, and nothing is sent.
func TestTheChainIsAskedBeforeARepeat(t *testing.T) {
	w := newWorld(t, 2)
	raw, row := w.accept(plain(0))
	w.attempt(&row)
	w.reached(raw, 2)
	w.mine()
	before := len(w.sent(raw))
	done := w.attempt(&row)
	if len(w.sent(raw)) != before || done.Attempts != 1 {
		t.Errorf("sent again though it is mined: %+v", done)
	}
	if s := w.state(row); s.Status != tx.StatusExecuted || s.Block.Hash != w.chain.Head().Hash {
		t.Errorf("%s in block %d", s.Status, s.Block.Number)
	}
}

// The same holds after a rebuild of the queue, which has forgotten the attempts.
func TestTheChainIsAskedAfterARebuild(t *testing.T) {
	w := newWorld(t, 2)
	raw, row := w.accept(plain(0))
	w.attempt(&row)
	w.reached(raw, 2)
	w.mine()
	row.Attempts = 0
	if w.attempt(&row); len(w.sent(raw)) != 2 || w.state(row).Status != tx.StatusExecuted {
		t.Errorf("%s, sent to %v", w.state(row).Status, w.sent(raw))
	}
}

// A failed look does not hold the bytes back.
func TestLookFails(t *testing.T) {
	w := newWorld(t, 2)
	raw, row := w.accept(plain(0))
	row.Attempts = 3
	w.Look = func(context.Context, tx.State, string) (broadcaster.Sight, error) {
		return broadcaster.Sight{}, errors.New("away")
	}
	if done := w.attempt(&row); done.Attempts != 4 {
		t.Errorf("%+v", done)
	}
	w.reached(raw, 2)
}

// hurried makes an attempt with the deadline that a lease leaves it.
func (w *world) hurried(row *tx.Work, within time.Duration) tx.Done {
	ctx, cancel := context.WithTimeout(w.t.Context(), within)
	defer cancel()
	done := w.Attempt(ctx, *row)
	row.Attempts = done.Attempts
	return done
}

// A node that does not answer costs neither the record of the others' answers…
func TestHangingNodeLeavesTimeToRecord(t *testing.T) {
	w := newWorld(t, 2)
	_, row := w.accept(plain(0))
	w.a.Set(chaintest.Faults{Delay: time.Minute})
	done := w.hurried(&row, time.Second)
	if s := w.state(row); s.Status != tx.StatusBroadcasting || done.Note != "taken" {
		t.Errorf("%s, %+v; want what node b said", s.Status, done)
	}
}

// …nor the repeat, if it is the node that the chain is read from.
func TestHangingLookLeavesTimeToSend(t *testing.T) {
	w := newWorld(t, 2)
	raw, row := w.accept(plain(0))
	row.Attempts = 1
	w.Look = func(ctx context.Context, _ tx.State, _ string) (broadcaster.Sight, error) {
		<-ctx.Done()
		return broadcaster.Sight{}, ctx.Err()
	}
	done := w.hurried(&row, time.Second)
	if done.Note != "taken" {
		t.Errorf("%+v", done)
	}
	w.reached(raw, 2)
}

// A transaction whose predecessors are missing is sent once. Then it waits without being
// sent, with growing pauses, until the chain wants its nonce.
func TestWaitingForANonce(t *testing.T) {
	w := newWorld(t, 2)
	raw, row := w.accept(plain(2))
	w.attempt(&row)
	w.reached(raw, 2)
	least := w.Schedule.RebroadcastMin
	for _, c := range [][2]time.Duration{{0, least}, {time.Second, least}, {20 * time.Second, 10 * time.Second}, {time.Hour, time.Minute}} {
		waited, pause := c[0], c[1]
		row.WaitSince = time.Now().Add(-waited)
		done := w.attempt(&row)
		if done.WaitNonce != 1 || done.Note != "waiting for nonce 0" || done.Attempts != 1 || !done.SentAt.IsZero() {
			t.Errorf("%+v", done)
		}
		if got := time.Until(done.NextAt); got > pause+time.Second || got < pause-2*time.Second {
			t.Errorf("waited %v, comes back in %v, want about %v", waited, got, pause)
		}
	}
	w.chain.DropAll()
	w.mine(chaintest.EncodePlain(plain(0)), chaintest.EncodePlain(plain(1)))
	if done := w.attempt(&row); done.WaitNonce != 0 || done.Attempts != 2 {
		t.Errorf("its turn has come: %+v", done)
	}
	w.reached(raw, 4)
	if names := w.names(row); slices.Contains(names, "tx.rejected.v1") {
		t.Errorf("waiting was called a failure: %v", names)
	}
}

// Refusals about the nonce or the time trigger a look at once.
func TestTellingRefusals(t *testing.T) {
	ours := plain(0)
	rival := ours
	rival.Gas++
	replay := ours
	replay.NonceKey, replay.Window.Before = chain.ExpiringKey, uint64(time.Now().Unix())+20
	for name, c := range map[string]struct {
		ours, mined chain.Signed
		want        tx.Status
	}{
		"a rival used the nonce": {ours, rival, tx.StatusStale},
		"mined by others":        {ours, ours, tx.StatusExecuted},
		"expiring nonce, mined":  {replay, replay, tx.StatusExecuted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			_, row := w.accept(c.ours)
			w.mine(chaintest.EncodePlain(c.mined))
			w.attempt(&row)
			if got := w.state(row).Status; got != c.want {
				t.Errorf("%s after the first attempt, want %s", got, c.want)
			}
		})
	}
}

// A predecessor is missing, and the node's refusal names the gap: the transaction waits at
// once.
func TestRefusedForAGap(t *testing.T) {
	w := newWorld(t, 2)
	_, row := w.accept(plain(7))
	w.a.Set(refuse("nonce 7 too high, expected 0"))
	w.b.Set(refuse("nonce 7 too high, expected 0"))
	done := w.attempt(&row)
	if done.WaitNonce != 1 || done.Attempts != 1 || done.SentAt.IsZero() || w.state(row).Status != tx.StatusRetry {
		t.Errorf("%+v", done)
	}
}

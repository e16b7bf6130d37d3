package main_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// A node accepts the bytes but its reply is cut, in three of a hundred requests. Nothing is
// lost, paid twice or stuck.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	allEngines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, store, "--block-time", "1")
		w.proxy.Cut(0.03)
		s := w.service(t)
		check(t, s.Start(w.ctx))
		payments, to := rig.Payments(1001, 300)
		if acked := load(w.ctx, s, payments, 16); len(acked) != len(payments) {
			t.Fatalf("%d of %d acknowledged", len(acked), len(payments))
		}
		w.delivered(t, s.URL, payments, rig.Sealed)
		w.paidOnce(t, to, len(payments))
		if w.proxy.Cuts() == 0 {
			t.Error("no reply was cut: the fault did not bite")
		}
		t.Logf("%d replies cut, calls %v", w.proxy.Cuts(), w.proxy.Calls())
		check(t, s.Stop(w.ctx))
	})
}

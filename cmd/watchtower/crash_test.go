package main_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// crashPoints lists the points where the service is killed, with the number of passes before:
// enough that work of every kind is in progress.
func crashPoints() map[string]string {
	points := map[string]string{}
	for _, p := range append(commands.CrashPoints(), postgres.CrashPoints()...) {
		points[p] = "20"
	}
	points["queue.applied"] = "5" // events arrive in batches
	points["verdict"] = "5"
	return points
}

// The service is killed, as by kill -9, at every named point while clients post. After its
// restart the clients repeat the requests without an answer.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		for point, passes := range crashPoints() {
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				killedAt(t, newWorld(t, store, "--block-time", "1"), point, passes)
			})
		}
	})
}

func killedAt(t *testing.T, w *world, point, passes string) {
	payments, to := rig.Payments(1, 120)
	s := w.service(t, "WATCHTOWER_CRASH_AT="+point+":"+passes)
	check(t, s.Start(w.ctx))
	acked := load(w.ctx, s, payments, 8)
	select {
	case <-s.Ended():
	case <-w.ctx.Done():
		t.Fatalf("the service never came to %s", point)
	}

	s.Env = nil
	check(t, s.Start(w.ctx))
	for hash := range acked {
		if _, err := rig.Get(w.ctx, s.URL, hash); err != nil {
			t.Errorf("acknowledged and lost: %v", err)
		}
	}
	again := load(w.ctx, s, payments, 8)
	if len(again) != len(payments) {
		t.Errorf("%d of %d accepted when posted again", len(again), len(payments))
	}
	w.delivered(t, s.URL, payments, rig.Executed)
	w.paidOnce(t, to, len(payments))
	check(t, s.Stop(w.ctx))
}

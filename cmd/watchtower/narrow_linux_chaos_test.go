//go:build chaos && linux

package main_test

import (
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// Row 19. The connection to the store carries 32 kB per second and drops packets that wait for
// long: payments are late, and none is lost.
func TestNarrowLine(t *testing.T) {
	t.Parallel()
	a := newArchipelago(t, 1)
	s := a.posts[0]
	check(t, s.Start(a.ctx))
	payments, to := rig.Payments(9820, 200)
	var squeezing sync.WaitGroup
	squeezing.Go(func() {
		a.wait(time.Second)
		check(t, s.store.Narrow(256_000))
		a.wait(2 * blackout)
		check(t, s.store.Mend())
	})
	failed, longest := a.insist(t, payments, 8, s.URL)
	squeezing.Wait()
	a.delivered(t, s.URL, payments, rig.Sealed)
	t.Logf("%d requests without an answer, the longest acceptance took %v; latest first answer of a node %v",
		failed, longest.Round(time.Millisecond), a.late(t, s.URL, payments).Round(time.Millisecond))
	a.paidOnce(t, to, len(payments))
	check(t, s.Stop(a.ctx))
}

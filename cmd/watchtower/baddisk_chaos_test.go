//go:build chaos && linux

package main_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// awaitHealth waits until /health answers with a status and returns how long it took.
func (b *box) awaitHealth(t *testing.T, want int) time.Duration {
	t.Helper()
	began := time.Now()
	for got := 0; got != want; {
		if b.ctx.Err() != nil {
			t.Fatalf("/health answers %d and never %d", got, want)
		}
		if got = health(b.ctx, b.service.URL); got != want {
			b.wait(20 * time.Millisecond)
		}
	}
	return time.Since(began)
}

// refused posts payments in turn until row requests in succession have failed, and returns how
// long the last took to fail.
func (b *box) refused(t *testing.T, payments []rig.Payment, row int) (took time.Duration) {
	t.Helper()
	for refused := 0; refused < row; {
		for _, p := range payments {
			began := time.Now()
			results, err := rig.Submit(b.ctx, b.service.URL, rig.TempoChain, p.Raw)
			if refused, took = refused+1, time.Since(began); err == nil && results[0].OK {
				refused = 0
			}
			if b.ctx.Err() != nil {
				t.Fatal("the disk is full, and requests are taken all the same")
			}
			if refused == row {
				break
			}
		}
	}
	return took
}

// Row 9. The disk fills up under load: requests are refused and /health reports it. When space
// is freed, the service goes on without a restart.
func TestDiskFull(t *testing.T) {
	boxes(t, diskBytes/2, func(t *testing.T, b *box) {
		payments, to := rig.Payments(9720, 500)
		before := payments[:200]
		acked := loadAnd(b.ctx, b.service, before, 8, 50, func() {
			if err := b.disk.Fill(0); err != nil {
				t.Error(err)
			}
		})
		took := b.refused(t, payments[200:], 10)
		noticed := b.awaitHealth(t, http.StatusServiceUnavailable)
		b.wait(8 * time.Second) // no client posts
		// A small append of the service's own may fit into a page already on disk, and succeed.
		// /health reports trouble again as soon as the next append fails.
		b.awaitHealth(t, http.StatusServiceUnavailable)
		check(t, b.disk.Free())
		began := time.Now()
		if b.db != nil && !b.db.Runs() { // it ends itself when its log has no space
			check(t, b.db.KillAll())
			check(t, b.db.Start(b.ctx))
			t.Log("the server had ended itself")
		}
		b.awaitHealth(t, http.StatusOK)
		t.Logf("%d acknowledged before; refused within %v; /health told after %v; healthy %v after there was room", len(acked),
			took.Round(time.Millisecond), noticed.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		lost, _ := lost(acked, b.standing(t, before))
		if lost > 0 {
			t.Errorf("%d of %d acknowledged were lost", lost, len(acked))
		}
		b.settle(t, payments, to)
		check(t, b.service.Stop(b.ctx))
	})
}

// Row 8. The disk fails some flushes, and later loses its power: all acknowledged payments
// survive. After a failed flush Postgres ends all sessions and recovers, or ends itself; SQLite
// rolls the commit back.
func TestFailingDisk(t *testing.T) {
	testenv.Programs(t, rig.TracePrograms()...)
	boxes(t, diskBytes, func(t *testing.T, b *box) {
		calls, when := rig.Flushes, "error=EIO:when=5+9" // per thread
		if b.db != nil {
			// Per process. A recovery flushes more tables and indexes than that: if those
			// flushes failed too, each recovery would fail, and the server would never start.
			calls, when = rig.LogFlushes, "error=EIO:when=8"
		}
		failing := b.inject(t, calls, when)
		payments, to := rig.Payments(9730, 300)
		var cut sync.Once
		var failed error
		cutPower := func() {
			if failed = b.freeze(); failed == nil {
				failed = b.cut()
			}
		}
		acked := loadAnd(b.ctx, b.service, payments, 8, 100, func() { cut.Do(cutPower) })
		cut.Do(cutPower) // in case fewer than 100 were acknowledged
		check(t, failed)
		hits := failing.Hits()
		check(t, failing.End())
		if hits == 0 {
			t.Fatal("no flush failed")
		}
		took, err := b.restart(b.ctx)
		check(t, err)
		lost, unheard := lost(acked, b.standing(t, payments))
		t.Logf("%d flushes failed; %d acknowledged, %d lost, %d stand that nobody heard of, ready after %v", hits, len(acked), lost, unheard, took.Round(time.Millisecond))
		if lost > 0 {
			t.Errorf("%d of %d acknowledged were lost", lost, len(acked))
		}
		b.settle(t, payments, to)
		check(t, b.service.Stop(b.ctx))
	})
}

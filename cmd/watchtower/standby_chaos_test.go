//go:build chaos && linux

package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// Row 10. The primary dies while its standby restarts, and the standby is promoted. A
// synchronous standby has every acknowledged payment. An asynchronous standby does not, so it
// must not be promoted.
func TestStandbyPromoted(t *testing.T) {
	bin := testenv.Need(t, testenv.PostgresBinVar)
	for name, synchronous := range map[string]bool{"synchronous": true, "asynchronous": false} {
		t.Run(name, func(t *testing.T) {
			primary, err := server.NewPostgres(t.Context(), bin)
			check(t, err)
			t.Cleanup(func() { check(t, primary.Remove()) })
			check(t, primary.Start(t.Context()))
			standby, err := primary.NewStandby(t.Context(), "second")
			check(t, err)
			t.Cleanup(func() { check(t, standby.Remove()) })
			check(t, standby.Start(t.Context()))
			if synchronous {
				check(t, primary.Synchronous(t.Context(), "second"))
			}
			w := newWorld(t, func(_ *testing.T, dir string) []string {
				return []string{"--store", both(primary.URL(), standby.URL()), "--vault-key-file", filepath.Join(dir, "vault.key")}
			}, "--block-time", "1")
			s := w.service(t)
			check(t, s.Start(w.ctx))
			const clients = 8
			payments, to := rig.Payments(9740, 800)
			var failed error
			var took time.Duration
			acked := loadAnd(w.ctx, s, payments, clients, 100, func() {
				if failed = standby.Stop(); failed != nil {
					return
				}
				w.wait(500 * time.Millisecond)
				died := time.Now()
				if failed = primary.KillAll(); failed != nil {
					return
				}
				if failed = standby.Start(w.ctx); failed == nil {
					failed = standby.Promote(w.ctx)
				}
				w.insist(t, payments[len(payments)-1:], 1, s.URL)
				took = time.Since(died)
			})
			check(t, failed)
			b := &box{world: w, service: s}
			lost, unheard := lost(acked, b.standing(t, payments))
			t.Logf("%d acknowledged, %d lost, %d stand that nobody heard of, writing again within %v", len(acked), lost, unheard, took.Round(time.Millisecond))
			switch {
			case synchronous && lost > 0:
				t.Errorf("%d of %d acknowledged were lost", lost, len(acked))
			case !synchronous && lost == 0:
				t.Error("the standby was not behind: nothing was tested")
			}
			if !synchronous { // before clients repeat the lost requests, and after
				unwritten := b.unwritten(t, payments)
				check(t, s.Stop(w.ctx))
				// The service went on: signed bytes are lost with the primary, while their
				// events reached the standby. Each client has at most one such request.
				without := b.without(t)
				t.Logf("%d attempts were not written, %d stand without their bytes", unwritten, without)
				if without > clients {
					t.Errorf("%d stand without their bytes, and there were %d requests under way", without, clients)
				}
				b.judgeLosses(t, lost, without, unwritten)
				check(t, s.Start(w.ctx))
			}
			w.insist(t, payments, clients, s.URL)
			w.delivered(t, s.URL, payments, rig.Executed)
			w.paidOnce(t, to, len(payments))
			unwritten := b.unwritten(t, payments)
			if synchronous && unwritten > 0 {
				t.Errorf("%d attempts came before what is written", unwritten)
			}
			check(t, s.Stop(w.ctx))
			b.judgeLosses(t, 0, 0, unwritten)
		})
	}
}

// both returns a URL of two servers; a client uses the writable one.
func both(first, second string) string {
	host := func(url string) string {
		_, rest, _ := strings.Cut(url, "@")
		host, _, _ := strings.Cut(rest, "/")
		return host
	}
	return strings.Replace(first, host(first), fmt.Sprintf("%s,%s", host(first), host(second)), 1)
}

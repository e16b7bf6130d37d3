package worker

import (
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

func estimated(r *intent.Request) { r.Gas.Limit = 0 }

// slowly blocks the estimates of requests until release is called.
func (w *world) slowly(requests ...intent.Request) (release func()) {
	until := make(chan struct{})
	for _, r := range requests {
		w.trials.Store(r.ID(), until)
	}
	release = sync.OnceFunc(func() { close(until) })
	watchdog := time.AfterFunc(20*time.Second, release) // a turn that waits for them fails instead of hanging
	w.t.Cleanup(func() { watchdog.Stop() })
	return release
}

// The estimates of one client's intents are slow. Intents of another client complete
// meanwhile; the slow ones complete after their estimates.
func TestSlowTrialsHoldNobody(t *testing.T) {
	for name, change := range map[string]func(*intent.Request){
		"estimated": estimated,
		"tried":     func(r *intent.Request) { r.Simulate = true },
		"in a row":  func(r *intent.Request) { r.Gas.Limit, r.Order = 0, "row" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker()
			var theirs []intent.Request
			for i := range 5 * measuresAtOnce {
				theirs = append(theirs, w.request(i, by("ann"), change))
			}
			release := w.slowly(theirs...)
			ids := w.ask(append(theirs, w.request(100, by("bob")), w.request(101, by("bob"), estimated))...)
			for range 4 {
				must(t, w.turns(a, 1))
				w.block()
			}
			n := len(theirs)
			w.is(ids[n], intent.StatusCompleted)
			w.is(ids[n+1], intent.StatusCompleted)
			w.is(ids[0], intent.StatusWaiting)
			release()
			for i := 0; !w.ended(intent.StatusCompleted, ids...)(); i++ {
				if i == 200 {
					t.Fatal("not all are done")
				}
				must(t, w.turns(a, 1))
				a.claim = true
				w.block()
			}
			w.judge()
		})
	}
}

// The holder of a lane dies between reserving a nonce and signing, and the next holder gets
// no estimate. The intent returns its nonce, and the intents behind it complete.
func TestSlowTrialsHoldNoNonce(t *testing.T) {
	w := newWorld(t)
	first := w.request(1, by("ann"), estimated)
	ids := w.ask(first, w.request(2, by("bob")))
	w.dies("intents.assigned")
	release := w.slowly(first)
	a := w.worker()
	for i := 0; !w.ended(intent.StatusCompleted, ids[1])(); i++ {
		if i == 60 {
			t.Fatal("bob's still waits")
		}
		_ = w.turns(a, 1)
		w.block()
	}
	w.is(ids[0], intent.StatusWaiting)
	release()
	w.clock.pass(w.settings.Claim)
	w.until(a, "both are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

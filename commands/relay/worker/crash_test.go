package worker

import (
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// livesMax bounds how often the process dies in one history.
const livesMax = 500

// doomed runs a process on the lane until it dies at the end of its life l, or until done.
// It reports whether the process has died.
func (w *world) doomed(l *life, ln *Lane, done func() bool) (died bool) {
	w.t.Helper()
	a, err := w.opened(ln)
	for step := 0; err == nil && !l.gone(); step++ {
		if step > 60 {
			w.t.Fatal("it neither dies nor ends")
		}
		err = w.turns(a, 1)
		if done() {
			return false
		}
		w.block()
	}
	if !l.gone() {
		w.t.Fatal(err)
	}
	return true
}

// attempted returns the hashes of the attempts in the log.
func (w *world) attempted() (hashes []chain.Hash) {
	w.t.Helper()
	for batch, err := range w.db.Log().ReadAll(w.t.Context(), 0, eventlog.Filter{Names: []string{"lane.attempted."}}, 1000) {
		must(w.t, err)
		for _, r := range batch.Events {
			e, err := lane.Codec().Decode(r.Name, r.Data)
			must(w.t, err)
			hashes = append(hashes, e.(lane.Attempted).Hash)
		}
	}
	return hashes
}

// Wherever a process dies, another takes the lane over, and no signed attempt is signed
// again: its hash stays the same.
func TestDiesAnywhere(t *testing.T) {
	run := func(t *testing.T, kill func(*life)) (died bool) {
		w := newWorld(t)
		ids := w.ask(w.request(1), w.request(2), w.request(3))
		l, ln := w.live(0, false)
		kill(l)
		died = w.doomed(l, ln, w.ended(intent.StatusCompleted, ids...))
		if died {
			w.clock.pass(w.settings.Claim) // its claims have lapsed
			before := w.attempted()
			w.until(w.worker(), "the next one ends it", w.ended(intent.StatusCompleted, ids...))
			if after := w.attempted(); len(after) != len(ids) && len(before) > 0 {
				t.Errorf("%d attempts when it died, %d in the end", len(before), len(after))
			}
		}
		w.judge()
		return died
	}
	for _, point := range CrashPoints() {
		t.Run(point, func(t *testing.T) {
			if !run(t, func(l *life) { l.point = point }) {
				t.Error("it was not reached")
			}
		})
	}
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			died := false
			t.Run(fmt.Sprintf("effect %d, after %t", n, after), func(t *testing.T) {
				died = run(t, func(l *life) { l.left, l.after = n, after })
			})
			if !died || n > livesMax {
				t.Logf("%d effects", n-1)
				break
			}
		}
	}
}

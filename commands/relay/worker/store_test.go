package worker

import (
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// A holder that cannot append to the log gives up the lane, even with nothing to append to
// the lane's own stream: another process may reach the log.
func TestLogIsAway(t *testing.T) {
	w := newWorld(t)
	l, ln := w.live(0, false)
	a, err := w.opened(ln)
	must(t, err)
	ids := w.ask(w.request(1), w.request(2))
	must(t, w.turns(a, 1))
	w.block()
	l.crash(l.point)
	if err := w.turns(a, 1); !errors.As(err, new(overError)) || !errors.Is(err, errDead) {
		t.Fatalf("the holder goes on: %v", err)
	}
	w.until(w.worker(), "another ends it", w.ended(intent.StatusCompleted, ids...))
	w.judge()
}

package worker

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// An intent is read once, when it is claimed: its lane knows its own later records, and
// events of a transaction are no news of the intent.
func TestIntentsAreReadOnce(t *testing.T) {
	w := newWorld(t)
	w.hears = true
	a := w.worker()
	const many = 40
	var requests []intent.Request
	for n := range many {
		requests = append(requests, w.request(n))
	}
	ids := w.ask(requests...)
	w.until(a, "all are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
	if n := w.reads["intent"]; n != many {
		t.Errorf("%d intents were read %d times", many, n)
	}

	// A client's command on an intent is news of it.
	w.hold = true
	id := w.ask(w.request(many))[0]
	must(t, w.turns(a, 1))
	before := w.reads["intent"]
	w.wish(id, intent.Cancel{At: w.clock.now()})
	w.hold = false
	w.until(a, "it is canceled", w.ended(intent.StatusCanceled, id))
	if n := w.reads["intent"] - before; n != 1 {
		t.Errorf("a canceled intent was read %d times", n)
	}
}

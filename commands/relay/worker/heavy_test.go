package worker

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// One client's intents have the largest gas limit: four are in flight at a time. Another
// client's intents all get nonces. All intents complete in the end.
func TestHeavyHoldsNobody(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	w.hold = true
	heavy := func(r *intent.Request) { r.Gas.Limit = 1 << 24 }
	var theirs, mine []intent.Request
	for i := range 6 {
		theirs, mine = append(theirs, w.request(i, by("ann"), heavy)), append(mine, w.request(10+i, by("bob")))
	}
	ids := w.ask(append(theirs, mine...)...)
	_ = w.turns(a, 3)
	had := map[string]int{}
	for _, id := range ids {
		if s := w.intent(id); s.Place != nil {
			had[s.Requested.Request.Client]++
		}
	}
	if had["ann"] != 4 || had["bob"] != 6 {
		t.Errorf("in flight are %v", had)
	}
	w.hold = false
	for range 10 {
		_ = w.turns(a, 1)
		w.block()
		w.clock.pass(w.settings.Claim)
	}
	for _, id := range ids {
		w.is(id, intent.StatusCompleted)
	}
	w.judge()
}

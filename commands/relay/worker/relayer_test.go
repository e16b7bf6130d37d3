package worker

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// One signer executes intents in batches.
func TestCarriesOut(t *testing.T) {
	w := newWorld(t)
	a := w.worker()
	var requests []intent.Request
	for n := range 120 {
		requests = append(requests, w.request(n))
	}
	ids := w.ask(requests...)
	w.until(a, "all are done", w.ended(intent.StatusCompleted, ids...))
	w.judge()
	if n := w.appends["lane"]; n > 20 {
		t.Errorf("%d appends to the lane for 120 intents: %v", n, w.appends)
	}
	if s := w.state(); s.Next != 120 || w.chain.Nonce(w.lane) != 120 {
		t.Errorf("the cursor is at %d, the chain wants %d", s.Next, w.chain.Nonce(w.lane))
	}
}

package worker

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// An intent that every node refuses for good fails, with their words, when a no-op has its
// nonce. Until then it is not reported as mined, even if a block contains the no-op.
func TestRefusedByNodes(t *testing.T) {
	w := newWorld(t)
	_, l := w.live(0, false)
	a, err := w.opened(l)
	must(t, err)
	ids := w.ask(w.request(1))
	w.until(a, "it is signed", func() bool { return len(w.intent(ids[0]).Attempts) > 0 })
	w.refuse(w.intent(ids[0]).Attempts[0].Hash)
	w.until(a, "it has failed", func() bool {
		s := w.intent(ids[0])
		if s.Status() == intent.StatusMined {
			t.Errorf("it is mined, by %s", s.Mined)
		}
		return s.Status() == intent.StatusFailed
	})
	const want = "delivery: invalid: intrinsic gas too low"
	if s := w.intent(ids[0]); s.End.Reason != intent.Refused || s.End.Detail != want || s.Attempts[len(s.Attempts)-1].Kind != intent.NoOp {
		t.Errorf("%+v, want %q; %+v", s.End, want, s.Attempts)
	}
	w.judge()
}

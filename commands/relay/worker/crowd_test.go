package worker

import (
	"errors"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Another client's many earlier intents delay a client's intents only by the other's
// share, whether or not they can be executed.
func TestCrowdOfAnotherClientKeepsNobodyWaiting(t *testing.T) {
	for name, hopeless := range map[string]bool{"they are carried out": false, "they cannot be carried out": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settings.Budget = 4
			a := w.worker()
			var requests []intent.Request
			for n := range 300 {
				r := w.request(n, func(r *intent.Request) { r.Client = "crowd" })
				if hopeless {
					w.reverts[r.ID()] = errors.New("insufficient funds for transfer")
				}
				requests = append(requests, r)
			}
			for n := range 8 {
				requests = append(requests, w.request(1000+n, func(r *intent.Request) { r.Client = "victim" }))
			}
			ids := w.ask(requests...)
			victims := ids[300:]
			count := func(of []chain.IntentID) (n int) {
				for _, id := range of {
					if s := w.intent(id); s.Place != nil || s.Status() == intent.StatusCompleted {
						n++
					}
				}
				return n
			}
			for blocks := 0; count(victims) < len(victims); blocks++ {
				if blocks == 60 {
					t.Fatalf("%d of its own are carried out, and %d of the crowd's", count(victims), count(ids[:300]))
				}
				_ = w.turns(a, 1) // it returns the other intents' errors
				w.block()
			}
			if crowd := count(ids[:300]); crowd > len(victims)+w.settings.Budget || !hopeless && crowd < len(victims)-w.settings.Budget {
				t.Errorf("meanwhile %d of the crowd's are carried out", crowd)
			}
		})
	}
}

// A sweep continues at the position of the client that got least far.
func TestSwept(t *testing.T) {
	of := func(client string, at eventlog.Position) intent.Claimed {
		return intent.Claimed{Waiting: intent.Waiting{Client: client, Position: at}}
	}
	if at := swept([]intent.Claimed{of("a", 1), of("b", 90), of("a", 5), of("b", 91), of("a", 7)}); at != 7 {
		t.Errorf("it goes on behind %d", at)
	}
}
